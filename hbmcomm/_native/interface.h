/* What Python may call. Plain declarations only: cffi reads this file too. */

enum hbm_status {
    HBM_OK,
    HBM_PENDING,      /* the operation is still under way */
    HBM_UNREADABLE,   /* not a plain array: nothing was done, Python reads the arguments */
    HBM_COPY_FIRST,   /* arrays overlap, or entries are not aligned: nothing was done */
    HBM_MISMATCH,     /* ranks called different things at the same point */
    HBM_TRUNCATED,    /* a rank sends another number of bytes than the other expects */
    HBM_PEER_DIED,    /* a rank's process is gone */
    HBM_INTERRUPTED,  /* a signal's handler wants this rank out of the call */
    HBM_CLOSED,       /* a rank has left the communicator */
    HBM_UNTRUSTED,    /* a rank named memory that is not its own */
    HBM_NO_MEMORY,    /* a rank has no room for staging buffers */
    HBM_BUSY,         /* another thread is inside a call on this communicator */
    HBM_FORKED,       /* this process is a fork of the rank */
    HBM_LAST_STATUS = HBM_FORKED
};

enum hbm_operation_code {
    HBM_BARRIER,
    HBM_BCAST,
    HBM_GATHER, HBM_SCATTER, HBM_ALLGATHER, HBM_ALLTOALL,
    HBM_GATHERV, HBM_SCATTERV, HBM_ALLGATHERV, HBM_ALLTOALLV,
    HBM_REDUCE, HBM_ALLREDUCE, HBM_REDUCE_SCATTER_BLOCK, HBM_REDUCE_SCATTER,
    HBM_SCAN, HBM_EXSCAN,
    HBM_FOREIGN /* this and above: calls that MPI itself serves, numbered by Python */
};

enum hbm_dtype {
    HBM_INT8, HBM_INT16, HBM_INT32, HBM_INT64,
    HBM_UINT8, HBM_UINT16, HBM_UINT32, HBM_UINT64,
    HBM_FLOAT16, HBM_BFLOAT16, HBM_FLOAT32, HBM_FLOAT64, HBM_LONGDOUBLE,
    HBM_COMPLEX64, HBM_COMPLEX128, HBM_CLONGDOUBLE,
    HBM_BOOL, HBM_PACKED, /* of other types, without gaps */
    HBM_SHORT_INT, HBM_INT_INT, HBM_LONG_INT, /* a value and its index, for MAXLOC and MINLOC */
    HBM_FLOAT_INT, HBM_DOUBLE_INT, HBM_LONG_DOUBLE_INT,
    HBM_DTYPES
};

enum hbm_reduction {
    HBM_SUM, HBM_PROD, HBM_MAX, HBM_MIN,
    HBM_LAND, HBM_LOR, HBM_LXOR, HBM_BAND, HBM_BOR, HBM_BXOR,
    HBM_MAXLOC, HBM_MINLOC,
    HBM_REDUCTIONS,
    HBM_USER = HBM_REDUCTIONS /* a function of the program; see hbm_call */
};

/* Bytes of one rank's block in a buffer of blocks of different lengths. */
typedef struct {
    uint64_t offset, bytes;
} hbm_part;

/* Folds n entries: b becomes a op b. */
typedef int (*hbm_user_fold)(uintptr_t function, const void *a, void *b, uint64_t n);

/* Where entries that were received without gaps belong: each goes to its runs of bytes. */
typedef struct {
    uintptr_t from, to;
    uint64_t entries, extent; /* bytes from one entry to the next */
    const hbm_part *runs;     /* of the first entry, from `to` */
    uint64_t run_count;
} hbm_unpacking;

/* One call as its rank makes it. `count` entries in one rank's block; send and recv as in MPI,
   both the same where the operation works in place, both the buffer in a broadcast. */
typedef struct {
    uint8_t operation, dtype, reduction;
    int32_t root;
    uint64_t count;
    uintptr_t send, recv;
    const hbm_part *send_parts; /* one for each rank, where blocks differ in length; else NULL */
    const hbm_part *recv_parts;
    hbm_user_fold fold;         /* of HBM_USER, with what it is given first */
    uintptr_t function;
    uint32_t entry_bytes;       /* of HBM_USER: of one entry; else 0 */
    uint32_t after_count;       /* what is unpacked once the call is complete */
    const hbm_unpacking *after;
} hbm_call;

/* Two calls that differ; or, for a rank that is gone, its number alone. */
typedef struct {
    int32_t status, rank, other;
    uint64_t own_what, own_count, others_what, others_count; /* see hbm_named */
} hbm_failure;

/* What one rank is to another: addresses as this process sees them. */
typedef struct {
    uintptr_t control;                           /* its control block for this communicator */
    uintptr_t ordinary; uint64_t ordinary_bytes; /* the memory that this and its staging are in */
    uintptr_t arrays; uint64_t array_bytes;      /* the memory of its arena arrays */
    uintptr_t claim;                             /* its process's claim on life; 0: unknown */
    int32_t pid;                                 /* 0: its private memory cannot be read */
    int32_t package, node, cache;                /* where its CPU is: equal numbers, equal places */
} hbm_peer;

/* When which way is taken; the same on all ranks. Python's table says what each means. */
typedef struct {
    uint64_t eager_bytes, short_bytes, fold_bytes, fetch_bytes, fetch_idle_bytes;
    uint64_t pair_bytes, piece_bytes, by_node_bytes, stream_bytes;
    uint32_t fan_in, push_ranks;
    uint32_t spin_ns, yield_ns, nap_ns;
} hbm_tuning;

typedef struct hbm_comm hbm_comm;
typedef struct hbm_operation hbm_operation;
typedef struct hbm_heap hbm_heap;

typedef struct {
    int32_t rank, size;
    int32_t oversubscribed; /* more ranks than CPUs: waiting ranks give way at once */
    uint32_t boot;          /* for the claims */
    const hbm_peer *peers;  /* one for each rank, this one included */
    hbm_heap *staging;      /* this rank's ordinary memory */
    hbm_heap *arrays;       /* and that of its arrays */
    hbm_tuning tuning;
} hbm_setup;

uint64_t hbm_control_bytes(void);
uint64_t hbm_slot_bytes(void); /* no message of more is short */
uint64_t hbm_dtype_size(int dtype);
uint64_t hbm_alignment(int dtype); /* of an entry that is folded */
int hbm_reduces(int dtype, int reduction);

hbm_comm *hbm_open(const hbm_setup *setup);
int hbm_close(hbm_comm *comm);
void hbm_free(hbm_comm *comm);
/* After a failure, peers may still write into arrays: their memory is held back from reuse until all
   have stopped; hbm_let_go releases it. */
int hbm_all_stopped(const hbm_comm *comm);
int hbm_holds(const hbm_comm *comm);
void hbm_let_go(hbm_comm *comm);
int hbm_failure_of(const hbm_comm *comm, hbm_failure *failure);
uint64_t hbm_link_bytes(const hbm_comm *comm);

/* Blocking calls. */
int hbm_run(hbm_comm *comm, const hbm_call *call);
int hbm_must_copy(hbm_comm *comm, const hbm_call *call); /* whether it gives HBM_COPY_FIRST */

/* What is run again and again, by its address: Python passes one number quicker than anything else.
   0: HBM_UNREADABLE. */
typedef struct {
    hbm_comm *comm;
    const hbm_call *call;
} hbm_plan;

int hbm_run_plan(uintptr_t plan);

/* Operations that are started now and completed later; persistent ones are started many times.
   Any call or wait of this process brings all of its operations forward. hbm_wait returns HBM_PENDING
   where a signal's handler wants this thread out. */
hbm_operation *hbm_new(hbm_comm *comm, const hbm_call *call); /* the caller keeps its arrays */
int hbm_start(hbm_operation *operation, uintptr_t request);
int hbm_test(hbm_operation *operation, uintptr_t request);
int hbm_wait(hbm_operation *operation, uintptr_t request); /* request: the place of MPI's handle, or 0 */
void hbm_drop(hbm_operation *operation); /* at once, or when it is complete */
uint64_t hbm_in_flight(void);            /* operations of this process that are not complete */

/* The same for operations that are started once: a number above HBM_LAST_STATUS is one in flight,
   any other the status of one that is not; 0 may be waited for, too. One that is found complete is
   gone, and its number is as good as 0; one that failed stays until it is dropped. */
uint64_t hbm_start_once(hbm_comm *comm, const hbm_call *call, uintptr_t request);
uint64_t hbm_start_plan(uintptr_t plan, uintptr_t request);
int hbm_test_once(uint64_t operation, uintptr_t request);
int hbm_wait_once(uint64_t operation, uintptr_t request);
void hbm_drop_once(uint64_t operation);
void hbm_take_back_request(uintptr_t request); /* of one that was complete when it was started */

/* MPI's functions and constants, so that waits here progress MPI, and waits there progress us. */
typedef struct {
    uintptr_t iprobe, grequest_start, grequest_complete, wait;
    uintptr_t status_set_elements, status_set_cancelled;
    uintptr_t register_progress; /* Open MPI: opal_progress_register; else 0 */
    uintptr_t async_start;       /* MPICH: MPIX_Async_start; else 0 */
    uint64_t world, byte, stream, null_request; /* handles; of MPICH the stream, 0x3c000000 */
    int32_t any_source, last_tag, error, handle_bytes, main_thread_only, serves_requests;
    uint64_t handle_at; /* bytes from the beginning of a request of mpi4py's to MPI's handle */
} hbm_mpi;
void hbm_use_mpi(const hbm_mpi *mpi); /* NULL: MPI is about to end */
int hbm_serves_requests(void);

/* Calls on NumPy arrays by their id(); HBM_UNREADABLE for whatever is not plain. The second half
   starts them, as hbm_start_once does. */
void hbm_numpy(uintptr_t ndarray, uintptr_t in_place);
int hbm_read_array(uintptr_t object, int writable, uintptr_t *address, uint64_t *entries);
int hbm_barrier(hbm_comm *comm);
int hbm_bcast(hbm_comm *comm, uintptr_t buffer, int root);
int hbm_blocks(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int root);
int hbm_fold(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int reduction,
             int root);
uint64_t hbm_ibarrier(hbm_comm *comm, uintptr_t request);
uint64_t hbm_ibcast(hbm_comm *comm, uintptr_t buffer, int root, uintptr_t request);
uint64_t hbm_iblocks(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int root,
                     uintptr_t request);
uint64_t hbm_ifold(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int reduction,
                   int root, uintptr_t request);

/* Claims on places in shared memory, 8 bytes each, that end with the process; NULL and errno EBUSY
   where another has it. `boot` is a number of this boot of the machine, not 0. */
typedef struct hbm_claim hbm_claim;
hbm_claim *hbm_take(uintptr_t place, uint32_t boot);
void hbm_give(hbm_claim *claim);
int hbm_is_taken(uintptr_t place, uint32_t boot);

/* Heaps: which extents of a range of this process's own shared memory are taken, and which steps of
   it are populated. Offsets are from the beginning of the range. Every function may be called by any
   thread; functions that return int give 0 or an errno value. In the child of a fork they fail with
   ECHILD and change nothing. */
#define HBM_NOWHERE 0xFFFFFFFFFFFFFFFF /* no offset; errno says why: ENOMEM, EINVAL or ECHILD */
typedef struct {
    uint64_t bytes, taken, parked; /* of the range, and of it */
    uint64_t populated, idle;      /* idle: in populated steps that are free from end to end */
    uint64_t keep;
    uint64_t extents;              /* that are not free */
} hbm_heap_usage;

/* `step`: a power of two, of which `address` is a multiple. All is free, nothing is populated. */
hbm_heap *hbm_heap_new(uintptr_t address, uint64_t bytes, uint64_t step);
void hbm_heap_free(hbm_heap *heap);

/* The lowest free extent of whole cache lines at a multiple of `alignment`, a power of two. It need
   not be populated; hbm_heap_get also populates it, through the function given to hbm_heap_on_grow,
   which returns 0 once there is memory from `start` up to `end`, 1 where there is none, and less than 0
   where a signal's handler raised, before or after there was: after hbm_heap_fills_itself the heap
   populates the range then. That is not for devices, which hold what others have left there. */
uint64_t hbm_heap_take(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
uint64_t hbm_heap_get(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
void hbm_heap_on_grow(hbm_heap *heap, int (*populate)(void *context, uint64_t start, uint64_t end),
                      void *context);
void hbm_heap_fills_itself(hbm_heap *heap);
/* EINVAL where nothing was taken at just this offset. */
int hbm_heap_give(hbm_heap *heap, uint64_t offset);
/* Bytes taken at just this offset, in whole cache lines; 0: none. */
uint64_t hbm_heap_size(hbm_heap *heap, uint64_t offset);

/* hbm_heap_missing: 1 and the first run of steps under [start, end) that are not populated, or 0.
   hbm_heap_populated: records that steps are populated. hbm_heap_discard: after a failure, returns
   memory under steps of a range that are not recorded as populated. */
int hbm_heap_missing(hbm_heap *heap, uint64_t start, uint64_t end, uint64_t *from, uint64_t *to);
int hbm_heap_populated(hbm_heap *heap, uint64_t from, uint64_t to);
int hbm_heap_discard(hbm_heap *heap, uint64_t from, uint64_t to);
/* How many idle bytes stay populated; more go back to the system. At first all stay. */
int hbm_heap_keep(hbm_heap *heap, uint64_t bytes);

/* While [start, end) is held, no memory in it is handed out, whether it is free or becomes free.
   Returns a number for hbm_heap_release, or 0 and errno. Held ranges may overlap. */
uint64_t hbm_heap_hold(hbm_heap *heap, uint64_t start, uint64_t end);
int hbm_heap_release(hbm_heap *heap, uint64_t id);
void hbm_heap_use(hbm_heap *heap, hbm_heap_usage *usage);

/* A PyDataMem_Handler (NEP 49) over a heap; 0: no memory. Its capsule needs hbm_handler_end as
   destructor and, as context, a Python object that the destructor releases. hbm_handler_python must
   be called first, with the addresses of PyCapsule_GetPointer, PyCapsule_GetContext, Py_DecRef. */
void hbm_handler_python(uintptr_t pointer, uintptr_t owner, uintptr_t release);
uintptr_t hbm_handler_new(hbm_heap *heap, uintptr_t address, uint64_t bytes);
void hbm_handler_end(void *capsule);

/* hbm_leave: records in one byte of `marks` that a rank has left. hbm_all_gone: whether every rank
   has left or is dead. */
void hbm_leave(uintptr_t marks, int rank);
int hbm_all_gone(uintptr_t marks, int ranks, const uintptr_t *claims, uint32_t boot);

unsigned hbm_forks(void);

void hbm_on_wait(int (*interrupted)(void));
