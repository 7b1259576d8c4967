/* The functions that Python may call. Plain declarations only: cffi reads this file too. */

enum hbm_status {
    HBM_OK,
    HBM_PENDING,      /* the operation is not complete */
    HBM_UNREADABLE,   /* not a plain array: nothing was done, Python must read the arguments */
    HBM_COPY_FIRST,   /* arrays overlap, or entries are not aligned: nothing was done */
    HBM_UNSERVED,     /* only MPI can do this call, on every rank: nothing was done */
    HBM_MISMATCH,     /* ranks made different calls at the same point */
    HBM_TRUNCATED,    /* a rank sends more or fewer bytes than the other expects */
    HBM_PEER_DIED,    /* a rank's process has died */
    HBM_INTERRUPTED,  /* a signal's handler asks this rank to leave the call */
    HBM_CLOSED,       /* a rank has left the communicator */
    HBM_UNTRUSTED,    /* a rank named memory that is not its own */
    HBM_GARBAGE,      /* a rank's control block holds a failure that no rank records */
    HBM_NO_MEMORY,    /* a rank has no memory for staging buffers */
    HBM_BUSY,         /* another thread is inside a call on this communicator */
    HBM_FORKED,       /* this process is a fork of the rank */
    HBM_LOST,         /* hbm_lose(): Python knows which rank of which host */
    HBM_WIRE_FAILED,  /* a message to or from another host failed; `own_what` is the wire's code */
    HBM_LAST_STATUS = HBM_WIRE_FAILED
};

enum hbm_operation_code {
    HBM_BARRIER,
    HBM_BCAST,
    HBM_GATHER, HBM_SCATTER, HBM_ALLGATHER, HBM_ALLTOALL,
    HBM_GATHERV, HBM_SCATTERV, HBM_ALLGATHERV, HBM_ALLTOALLV,
    HBM_REDUCE, HBM_ALLREDUCE, HBM_REDUCE_SCATTER_BLOCK, HBM_REDUCE_SCATTER,
    HBM_SCAN, HBM_EXSCAN,
    HBM_FOREIGN /* and above: calls that MPI itself serves, numbered by Python */
};

enum hbm_dtype {
    HBM_INT8, HBM_INT16, HBM_INT32, HBM_INT64,
    HBM_UINT8, HBM_UINT16, HBM_UINT32, HBM_UINT64,
    HBM_FLOAT16, HBM_BFLOAT16, HBM_FLOAT32, HBM_FLOAT64, HBM_LONGDOUBLE,
    HBM_COMPLEX64, HBM_COMPLEX128, HBM_CLONGDOUBLE,
    HBM_BOOL, HBM_PACKED, /* bytes of any other type, without gaps */
    HBM_SHORT_INT, HBM_INT_INT, HBM_LONG_INT, /* a value and its index, for MAXLOC and MINLOC */
    HBM_FLOAT_INT, HBM_DOUBLE_INT, HBM_LONG_DOUBLE_INT,
    HBM_DTYPES
};

enum hbm_reduction {
    HBM_SUM, HBM_PROD, HBM_MAX, HBM_MIN,
    HBM_LAND, HBM_LOR, HBM_LXOR, HBM_BAND, HBM_BOR, HBM_BXOR,
    HBM_MAXLOC, HBM_MINLOC,
    HBM_REDUCTIONS,
    HBM_USER = HBM_REDUCTIONS, /* a function of the program; see hbm_call */
    HBM_OBJECTS = 64 /* in a call that only moves data: plus the number of the operation, on pickled
                        objects, that it is part of */
};

/* What ranks know of the lengths of blocks in an operation. */
enum hbm_lengths {
    HBM_EQUAL,  /* all blocks are as long */
    HBM_LISTED, /* every rank has a list of all lengths */
    HBM_OWN     /* a rank knows those that it sends, or those that it receives */
};

/* What an operation moves, as MPI defines it. */
typedef struct {
    uint8_t from_root, to_root; /* only the root sends; only the root receives */
    uint8_t sends_each;         /* who sends has a block for each rank, else one for all */
    uint8_t receives_each;      /* who receives gets a block of each rank, else one */
    uint8_t lengths, reduces;
} hbm_shape;

/* The bytes of one rank's block, in a buffer of blocks of different lengths. */
typedef struct {
    uint64_t offset, bytes;
} hbm_part;

/* Reduces n entries: b = a op b. */
typedef int (*hbm_user_function)(uintptr_t function, const void *a, void *b, uint64_t n);

/* The destination of entries that were received without gaps: runs of bytes for each entry. */
typedef struct {
    uintptr_t from, to;
    uint64_t entries, extent; /* bytes from one entry to the next */
    const hbm_part *runs;     /* of the first entry; offsets count from `to` */
    uint64_t run_count;
} hbm_unpacking;

/* One rank's arguments of a call. `count` is the number of entries in one rank's block. `send`
   and `recv` are those of MPI; they are equal where the operation works in place, and in a
   broadcast. */
typedef struct {
    uint8_t operation, dtype, reduction;
    int32_t root;
    uint64_t count;
    uintptr_t send, recv;
    const hbm_part *send_parts; /* one for each rank if blocks differ in length, else NULL */
    const hbm_part *recv_parts;
    hbm_user_function reduce;   /* for HBM_USER; `function` is its first argument */
    uintptr_t function;
    uint64_t entry_bytes;       /* for HBM_USER: bytes of one entry */
    uint64_t after_count;       /* the number of unpackings after the call */
    const hbm_unpacking *after;
} hbm_call;

/* Two calls that differ; or only `rank`, the rank that left, died or failed. */
typedef struct {
    int32_t status, rank, other;
    uint64_t own_what, own_count, others_what, others_count; /* as in pack() of posts.c */
} hbm_failure;

/* As others_what: ranks differed before the calls that are on record. */
#define HBM_UNKNOWN_CALL 0xFFFFFFFFFFFFFFFF

/* A rank as another rank sees it: addresses are those of this process. */
typedef struct {
    uintptr_t control;                           /* its control block for this communicator */
    uintptr_t ordinary; uint64_t ordinary_bytes; /* the memory of `control` and of staging */
    uintptr_t arrays; uint64_t array_bytes;      /* the memory of its arena arrays */
    uintptr_t claim;                             /* the claim that its process holds; 0: unknown */
    int32_t pid;                                 /* 0: its private memory cannot be read */
    int32_t package, node, cache;                /* of its CPU: equal numbers mean the same one */
} hbm_peer;

/* Thresholds between algorithms, equal on all ranks. tuning.py explains each. */
typedef struct {
    uint64_t eager_bytes, short_bytes, fold_bytes, fetch_bytes, fetch_idle_bytes;
    uint64_t push_bytes, pair_bytes, piece_bytes, by_node_bytes, stream_bytes;
    uint32_t fan_in, push_ranks, check_calls;
    uint32_t spin_ns, yield_ns, nap_ns;
} hbm_tuning;

typedef struct hbm_comm hbm_comm;
typedef struct hbm_operation hbm_operation;
typedef struct hbm_heap hbm_heap;

typedef struct {
    int32_t rank, size;
    int32_t oversubscribed; /* more ranks than CPUs: waiting ranks yield at once */
    uint32_t boot;          /* a number of this boot, for claims */
    const hbm_peer *peers;  /* one for each rank, this one included */
    hbm_heap *staging;      /* the heap of this rank's ordinary memory */
    hbm_heap *arrays;       /* the heap of its arrays */
    hbm_tuning tuning;
} hbm_setup;

uint64_t hbm_control_bytes(int ranks);
uint64_t hbm_slot_bytes(void); /* the most bytes of a short message */
uint64_t hbm_dtype_size(int dtype);
uint64_t hbm_alignment(int dtype); /* of an entry that is reduced */
int hbm_reduces(int dtype, int reduction);
hbm_shape hbm_shape_of(int operation);

hbm_comm *hbm_open(const hbm_setup *setup);
int hbm_close(hbm_comm *comm);
/* The offset of this rank's staging buffers in the heap of its ordinary memory, or HBM_NOWHERE. Other
   ranks may read them after hbm_close(), until they have left or died: the caller frees them then. */
uint64_t hbm_staging(const hbm_comm *comm);
void hbm_free(hbm_comm *comm);
/* After a failure, peers may still write into arrays: hbm_has_held() returns whether memory is held
   back from reuse. Once hbm_all_stopped(), hbm_release_held() releases it. */
int hbm_all_stopped(const hbm_comm *comm);
int hbm_has_held(hbm_comm *comm);
void hbm_release_held(hbm_comm *comm);
int hbm_failure_of(const hbm_comm *comm, hbm_failure *failure);
int hbm_awaited(const hbm_comm *comm); /* the rank that this one waits for, or waited for last */
uint64_t hbm_link_bytes(const hbm_comm *comm);

/* Blocking calls. */
int hbm_run(hbm_comm *comm, const hbm_call *call);
/* A call that MPI serves: it gets a number, and later calls compare it. It waits for nobody unless
   hbm_tuning.check_calls: then all ranks meet here and compare it at once. */
int hbm_note(hbm_comm *comm, int operation);
int hbm_check(hbm_comm *comm, const hbm_call *call); /* HBM_OK, HBM_COPY_FIRST or HBM_UNSERVED */
int hbm_serves(const hbm_call *call, int ranks); /* whether it is served, as every rank decides */

/* Reduces the call's `count` entries of each input, in this process alone, in the order of the
   inputs. `out` may be one of them. */
int hbm_fold(const hbm_call *call, const void *const *in, int ins, void *out);

/* A call that runs again and again. It is passed by its address, because a number is the argument
   that Python passes fastest. 0: HBM_UNREADABLE. */
typedef struct {
    hbm_comm *comm;
    const hbm_call *call;
} hbm_plan;

int hbm_run_plan(uintptr_t plan);

/* Operations that are started now and completed later; persistent ones are started many times.
   Every call or wait of this process advances all of its operations. hbm_wait() returns HBM_PENDING
   where a signal's handler asks this thread to leave. `request` is a request object of mpi4py, or
   0. */
hbm_operation *hbm_new(hbm_comm *comm, const hbm_call *call); /* the caller keeps its arrays */
int hbm_start(hbm_operation *operation, uintptr_t request);
int hbm_test(hbm_operation *operation, uintptr_t request);
int hbm_wait(hbm_operation *operation, uintptr_t request);
void hbm_drop(hbm_operation *operation); /* frees it at once, or when it is complete */
uint64_t hbm_in_flight(void);            /* operations of this process that are not complete */

/* Operations that are started once. A number above HBM_LAST_STATUS is an operation in flight; any
   other is the status of one that is complete. A test or wait that finds an operation complete
   frees it, and its number then counts as 0, which may be waited for too. One that failed stays
   until it is dropped. */
uint64_t hbm_start_once(hbm_comm *comm, const hbm_call *call, uintptr_t request);
uint64_t hbm_start_plan(uintptr_t plan, uintptr_t request);
int hbm_test_once(uint64_t operation, uintptr_t request);
int hbm_wait_once(uint64_t operation, uintptr_t request);
void hbm_drop_once(uint64_t operation);
int hbm_is_over(uint64_t operation); /* its status was returned, or MPI has freed its request */
void hbm_take_back_request(uintptr_t request); /* for one that was complete when it started */

/* Which threads may call MPI: any, any but one at a time, or the main one. Below HBM_MULTIPLE no
   thread calls MPI beside the program. */
enum { HBM_MULTIPLE, HBM_SERIALIZED, HBM_FUNNELED };

/* MPI's functions and constants: with them, waits here advance MPI, and waits in MPI advance us. */
typedef struct {
    uintptr_t iprobe, grequest_start, grequest_complete, wait;
    uintptr_t isend, irecv, testsome; /* of hosts/mpi_wire.c; 0: it has none */
    uintptr_t is_complete;       /* MPICH: MPIX_Request_is_complete; else 0 */
    uintptr_t status_set_elements, status_set_cancelled;
    uintptr_t register_progress; /* Open MPI: opal_progress_register; else 0 */
    uintptr_t async_start;       /* MPICH: MPIX_Async_start; else 0 */
    uint64_t world, byte, stream, null_request; /* handles; `stream` is MPIX_STREAM_NULL of MPICH */
    int32_t any_source, last_tag, error, handle_bytes, threads, serves_requests;
    uint64_t handle_at; /* offset of MPI's handle in a request object of mpi4py */
} hbm_mpi;
void hbm_use_mpi(const hbm_mpi *mpi); /* NULL: MPI will end now */
int hbm_serves_requests(void);
/* Whether what this thread does from now on is no call of MPI that the program makes: a thread of the
   library serves it, or it frees an object. Under HBM_SERIALIZED the thread does not call MPI then.
   Returns what it was before. */
int hbm_set_beside(int beside);

/* Calls on plain NumPy arrays. Objects of Python are their id(). */
void hbm_numpy(uintptr_t ndarray, uintptr_t in_place);
int hbm_read_array(uintptr_t object, int writable, uintptr_t *address, uint64_t *entries);
/* An array of another library, which hbm_read_array reads by the address of this. Set by
   hbm_set_view. */
typedef struct {
    intptr_t references;
    const void *type;
    uintptr_t address;
    uint64_t entries;
    int32_t dtype, writable;
} hbm_view;
void hbm_set_view(hbm_view *view, uintptr_t address, uint64_t entries, int dtype, int writable);
int hbm_is_in_place(uintptr_t id);
int hbm_is_ndarray(uintptr_t id); /* exactly of that type */
/* Reads the arguments of a call, of which there may be none; returns whether they are plain. */
int hbm_read_call(const hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv,
                  int reduction, int root, hbm_call *call);

/* Methods in C; see methods.c. `objects` are MPI's reductions by their codes. The class `owner` gets
   a method with the name and signature of a function of mpi4py, which does an operation, or starts
   it if `request` is a class and not None; what the core did not do goes on in Python under `name`.
   An `operation` of -1 with the name None is the Start of a plan; one with HBM_OBJECTS is a call of
   objects. Returns whether it has one. `dumps` and `loads` are Python's own.
   `dict` holds requests and plans by the numbers of their operations in flight. */
void hbm_reductions(const uintptr_t *objects, int count);
void hbm_datatypes(const uintptr_t *objects, const int *dtypes, int count);
void hbm_pickles(uintptr_t dumps, uintptr_t loads, uintptr_t mpi4pys_pickler,
                 uintptr_t mpi4pys_buffer, uintptr_t get_referents, int highest_protocol);
void hbm_keep_in(uintptr_t dict);
int hbm_add_method(uintptr_t owner, uintptr_t function, int operation, uintptr_t name,
                   uintptr_t request);

int hbm_barrier(hbm_comm *comm);

/* Several hosts: the communicator of all ranks, on that of this host's ranks and on a wire between
   the hosts.

   A wire sends and receives messages between ranks. Messages between two ranks with equal tags keep
   their order; tags are below HBM_TAGS. A request is any number but 0. Functions return 0 or a code
   of the wire's own, which is in `own_what` of the failure. */
#define HBM_TAGS 3
typedef struct {
    void *self;
    int (*may)(void *self); /* whether this thread may use the wire now; NULL: always */
    int (*send)(void *self, int rank, int tag, const void *from, uint64_t bytes,
                uint64_t *request);
    int (*receive)(void *self, int rank, int tag, void *to, uint64_t bytes, uint64_t *request);
    int (*test)(void *self, uint64_t *requests, int n); /* sets those that are complete to 0 */
    int (*wait)(void *self, uint64_t *request); /* sets it to 0 once it is complete; NULL: test */
    void (*cancel)(void *self, uint64_t *requests, int n); /* no message touches memory any more;
                                                              NULL: such memory is never freed */
    /* messages of up to `long_bytes` go in parts of `short_bytes`, longer ones in parts of `most` */
    uint64_t short_bytes, long_bytes, most;
} hbm_wire;

enum hbm_algorithm {
    HBM_AUTO,
    /* Allreduce, as users name them */
    HBM_RING, HBM_DOUBLING, HBM_RABENSEIFNER, HBM_TREE,
    HBM_ONE_SHOT,
    /* one root */
    HBM_TREE_BCAST, HBM_TREE_REDUCE, HBM_CHAIN_BCAST, HBM_CHAIN_REDUCE, HBM_FAN_OUT, HBM_FAN_IN,
    HBM_RING_SCATTER, HBM_RING_GATHER, HBM_MEET
};

typedef struct {
    uint64_t begin, end; /* entries of an array */
} hbm_range;

/* One host's part in an algorithm between hosts. */
typedef struct {
    int32_t algorithm, host, hosts, root;
    uint64_t count;
    const hbm_range *pieces; /* of each host; NULL: equal ones */
} hbm_schedule;

/* Messages that one host sends and receives at the same time. */
typedef struct {
    int32_t to, from; /* hosts; -1: none */
    hbm_range sent, received;
    int32_t reduces;  /* received entries are reduced with those in place, in the order of the hosts;
                         else they replace these */
    int32_t answered; /* the receiver answers once a long message has come, and the sender's next step
                         waits for that */
    int32_t joined;   /* the next step begins at the same time */
} hbm_step;

int hbm_step_of(const hbm_schedule *schedule, int number, hbm_step *step); /* 0: there is none */
int hbm_choose_allreduce(int asked, int hosts, uint64_t bytes);
int hbm_choose_bcast(int asked, int hosts, uint64_t bytes, uint64_t slices);
int hbm_choose_reduce(int asked, int hosts, uint64_t bytes, uint64_t slices);
/* How many slices a message has that hosts split, or that goes whole from host to host. `longest`:
   bytes of a leader's slice at most; 0: as hosts/steps.c has it. */
uint64_t hbm_slices(uint64_t count, uint64_t entry, int leaders, int hosts, int whole,
                    uint64_t longest);

typedef struct {
    int32_t rank, ranks, hosts;
    int32_t leaders;         /* of each host: ranks that talk to other hosts */
    int32_t algorithm;       /* HBM_AUTO, or that of every Allreduce */
    int32_t news;            /* a descriptor that is readable when a rank may be lost; -1: none */
    uint64_t longest;        /* bytes of a leader's slice; 0: as hosts/steps.c has it */
    const int32_t *host_of;  /* of each rank */
    const int32_t *leading;  /* the ranks of host 0 in the order in which they lead, of host 1 ... */
} hbm_hosts_setup;

/* A call as all ranks of all hosts see it. `bytes`: of each rank's block, 0 where it may differ. */
typedef struct {
    int32_t operation, root;
    uint64_t bytes;
} hbm_made_call;

/* `inside` and what the wire needs outlive the communicator. NULL: no memory. */
hbm_comm *hbm_open_hosts(hbm_comm *inside, const hbm_hosts_setup *setup, const hbm_wire *wire);
/* Messages of MPI on a communicator of its own, by its handle. 0: the table of MPI lacks them. */
int hbm_wire_of_mpi(uint64_t comm, hbm_wire *wire);
/* From any thread: waits and messages between hosts end with HBM_LOST. */
void hbm_lose(hbm_comm *hosts);
/* From any thread: how many calls have begun and are finished; how long the call that is not finished
   has waited for the next message. */
void hbm_calls(const hbm_comm *hosts, uint64_t *begun, uint64_t *finished, uint64_t *waited_ns);
int hbm_call_of(const hbm_comm *hosts, uint64_t number, hbm_made_call *call); /* 0: not on record */

/* Flags: numbers in memory that ranks share, at multiples of 8. Each has one writer, which raises it,
   and ranks that wait until it has at least a value. A wait that fails ends the communicator; one
   that a signal's handler ends (HBM_INTERRUPTED) does not. hbm_test_flag() waits for nothing: it
   returns HBM_PENDING where the writer can still raise the flag. */
int hbm_raise_flags(hbm_comm *comm, uintptr_t flags, uint64_t count, uint64_t value);
int hbm_await_flag(hbm_comm *comm, int writer, uintptr_t flag, uint64_t value);
int hbm_test_flag(hbm_comm *comm, int writer, uintptr_t flag, uint64_t value);
/* Whether a rank can still raise flags; if not, the communicator fails. For waits outside the core. */
int hbm_check_rank(hbm_comm *comm, int rank);

/* Claims: ownership of 8 bytes of shared memory, which ends with the process. NULL and errno EBUSY:
   they have an owner. `boot` is a number of this boot of the machine, not 0. */
typedef struct hbm_claim hbm_claim;
hbm_claim *hbm_acquire_claim(uintptr_t address, uint32_t boot);
void hbm_release_claim(hbm_claim *claim);
int hbm_is_claimed(uintptr_t address, uint32_t boot);

/* Heaps: the allocated extents of a range of this process's own shared memory, and the populated
   steps of it. Offsets count from the beginning of the range. Any thread may call these functions;
   those that return int return 0 or an errno value. In the child of a fork they fail with ECHILD
   and change nothing. */
#define HBM_NOWHERE 0xFFFFFFFFFFFFFFFF /* no offset; errno is ENOMEM, EINVAL or ECHILD */
typedef struct {
    uint64_t bytes, taken, parked; /* in all, allocated, held back */
    uint64_t populated, idle;      /* idle: in populated steps that are entirely free */
    uint64_t keep;
    uint64_t extents;              /* the number of extents that are not free */
} hbm_heap_usage;

/* `step` is a power of two, and `address` a multiple of it. All is free and nothing is
   populated. */
hbm_heap *hbm_heap_new(uintptr_t address, uint64_t bytes, uint64_t step);
void hbm_heap_delete(hbm_heap *heap);

/* hbm_heap_reserve() takes the lowest free extent of whole cache lines at a multiple of
   `alignment`, a power of two. hbm_heap_populate() puts memory under a range that was reserved, or
   returns ENOMEM, through the function that hbm_heap_on_grow() sets; hbm_heap_allocate() does both.
   That function returns 0 once there is memory from `start` to `end`, 1 where there is none, and
   less than 0 where a signal's handler raised, before or after the memory was there. In the last
   case, after hbm_heap_fills_itself(), the heap populates the range. Devices must not use that: they
   hold the data of earlier users. */
uint64_t hbm_heap_reserve(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
int hbm_heap_populate(hbm_heap *heap, uint64_t start, uint64_t end);
uint64_t hbm_heap_allocate(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
uint64_t hbm_heap_array(hbm_heap *heap, uint64_t bytes); /* long ones begin at a huge page */
void hbm_heap_on_grow(hbm_heap *heap, int (*populate)(void *context, uint64_t start, uint64_t end),
                      void *context);
void hbm_heap_fills_itself(hbm_heap *heap);
/* EINVAL: no extent was allocated at exactly this offset. */
int hbm_heap_free(hbm_heap *heap, uint64_t offset);
/* The bytes allocated at exactly this offset, in whole cache lines; 0: none. */
uint64_t hbm_heap_size(hbm_heap *heap, uint64_t offset);

/* hbm_heap_missing() finds the first run of steps under [start, end) that are not populated, and
   returns 1, or 0 where there is none. hbm_heap_populated() records that steps are populated.
   hbm_heap_discard(), after a failure, returns memory of steps that are not recorded as
   populated. */
int hbm_heap_missing(hbm_heap *heap, uint64_t start, uint64_t end, uint64_t *from, uint64_t *to);
int hbm_heap_populated(hbm_heap *heap, uint64_t from, uint64_t to);
int hbm_heap_discard(hbm_heap *heap, uint64_t from, uint64_t to);
/* Sets how many idle bytes stay populated; the rest goes back to the system. At first all stay. */
int hbm_heap_keep(hbm_heap *heap, uint64_t bytes);

/* While [start, end) is held, no memory in it is allocated, whether it is free or becomes free.
   Returns a number for hbm_heap_release(), or 0 and errno. Held ranges may overlap. */
uint64_t hbm_heap_hold(hbm_heap *heap, uint64_t start, uint64_t end);
int hbm_heap_release(hbm_heap *heap, uint64_t id);
void hbm_heap_use(hbm_heap *heap, hbm_heap_usage *usage);

/* A PyDataMem_Handler (NEP 49) over a heap; 0: no memory. Its capsule needs hbm_handler_end() as
   its destructor and, as its context, a Python object that the destructor releases. Call
   hbm_handler_python() first, with the addresses of PyCapsule_GetPointer, PyCapsule_GetContext and
   Py_DecRef. */
void hbm_handler_python(uintptr_t pointer, uintptr_t owner, uintptr_t release);
uintptr_t hbm_handler_new(hbm_heap *heap, uintptr_t address, uint64_t bytes);
void hbm_handler_end(void *capsule);

/* hbm_mark_left() records in one byte of `marks` that a rank has left. hbm_all_left()
   returns whether every rank has left or is dead. */
void hbm_mark_left(uintptr_t marks, int rank);
int hbm_all_left(uintptr_t marks, int ranks, const uintptr_t *claims, uint32_t boot);

unsigned hbm_forks(void);

void hbm_on_wait(int (*interrupted)(void));
/* Inside that function: the communicator in which this thread waits, and for how long already. */
const hbm_comm *hbm_waits_in(uint64_t *ns);
