/* What Python may call. Plain declarations only: cffi reads this file too. */

enum hbm_status {
    HBM_OK,
    HBM_UNREADABLE,  /* not a plain array: nothing was done, Python reads the arguments */
    HBM_MISMATCH,    /* ranks called different things at the same point */
    HBM_PEER_DIED,   /* a rank's process is gone */
    HBM_INTERRUPTED, /* a signal's handler wants this rank out of the call */
    HBM_CLOSED,      /* a rank has left the communicator */
    HBM_BUSY,        /* another thread is inside a call on this communicator */
    HBM_FORKED       /* this process is a fork of the rank */
};

enum hbm_operation {
    HBM_BARRIER,
    HBM_BCAST,
    HBM_GATHER,
    HBM_SCATTER,
    HBM_ALLGATHER,
    HBM_ALLTOALL,
    HBM_REDUCE,
    HBM_ALLREDUCE,
    HBM_REDUCE_SCATTER_BLOCK,
    HBM_FOREIGN /* this and above: calls that MPI itself serves, numbered by Python */
};

enum hbm_dtype {
    HBM_INT8, HBM_INT16, HBM_INT32, HBM_INT64,
    HBM_UINT8, HBM_UINT16, HBM_UINT32, HBM_UINT64,
    HBM_FLOAT16, HBM_BFLOAT16, HBM_FLOAT32, HBM_FLOAT64, HBM_LONGDOUBLE,
    HBM_COMPLEX64, HBM_COMPLEX128, HBM_CLONGDOUBLE,
    HBM_BOOL, HBM_PACKED, /* of other types, without gaps */
    HBM_DTYPES
};

enum hbm_reduction {
    HBM_SUM, HBM_PROD, HBM_MAX, HBM_MIN,
    HBM_LAND, HBM_LOR, HBM_LXOR, HBM_BAND, HBM_BOR, HBM_BXOR,
    HBM_REDUCTIONS
};

/* One call as its rank makes it. `count` entries in one rank's block; send and recv as in MPI,
   both the same where the operation works in place, both the buffer in a broadcast. */
typedef struct {
    uint8_t operation, dtype, reduction;
    int32_t root;
    uint64_t count;
    uintptr_t send, recv;
} hbm_call;

/* Two calls that differ; or, for a rank that is gone, its number alone. */
typedef struct {
    int32_t status, rank, other;
    hbm_call own, others;
} hbm_failure;

typedef struct {
    int32_t rank, size;
    int32_t oversubscribed;   /* more ranks than CPUs: waiting ranks give way at once */
    int32_t lock;             /* descriptor on which rank r holds a lock of byte r; -1: none */
    uint32_t boot;            /* for `claims` */
    uint64_t cache_bytes;     /* the last-level cache that the ranks share */
    uint64_t segment_bytes;
    const uintptr_t *segments; /* where each rank's segment is mapped here */
    const int32_t *nodes;      /* each rank's NUMA node */
    const uintptr_t *claims;   /* instead of locks: where each rank's claim is mapped; or NULL */
} hbm_setup;

typedef struct hbm_comm hbm_comm;

uint64_t hbm_heap_offset(void);
uint64_t hbm_dtype_size(int dtype);
int hbm_reduces(int dtype, int reduction);

hbm_comm *hbm_open(const hbm_setup *setup);
int hbm_close(hbm_comm *comm);
void hbm_free(hbm_comm *comm);
int hbm_run(hbm_comm *comm, const hbm_call *call);
int hbm_failure_of(const hbm_comm *comm, hbm_failure *failure);
uint64_t hbm_link_bytes(const hbm_comm *comm);

/* Calls on NumPy arrays by their id(); HBM_UNREADABLE for whatever is not plain. */
void hbm_numpy(uintptr_t ndarray, uintptr_t in_place);
int hbm_read_array(uintptr_t object, int writable, uintptr_t *address, uint64_t *entries);
int hbm_barrier(hbm_comm *comm);
int hbm_bcast(hbm_comm *comm, uintptr_t buffer, int root);
int hbm_blocks(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int root);
int hbm_fold(hbm_comm *comm, int operation, uintptr_t send, uintptr_t recv, int reduction,
             int root);

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
typedef struct hbm_heap hbm_heap;
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
   which returns 0 once there is memory from `start` up to `end`. */
uint64_t hbm_heap_take(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
uint64_t hbm_heap_get(hbm_heap *heap, uint64_t bytes, uint64_t alignment);
void hbm_heap_on_grow(hbm_heap *heap, int (*populate)(void *context, uint64_t start, uint64_t end),
                      void *context);
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
