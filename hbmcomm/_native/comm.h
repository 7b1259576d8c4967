/* What the C files of the core share: one rank's state of a communicator, an operation in flight,
   and how algorithms read and write the words of layout.h.

   An algorithm is a function that brings an operation forward: it returns HBM_PENDING where it must
   wait (and has noted for what), HBM_OK when this rank's part is complete, or why it failed. It is
   called again until it does not return HBM_PENDING, and keeps its place in the operation. */
#ifndef HBMCOMM_COMM_H
#define HBMCOMM_COMM_H

#include "copy.h"
#include "groups.h"
#include "layout.h"

typedef int (*advance)(hbm_operation *o);

struct hbm_operation {
    hbm_comm *comm;
    hbm_call call;
    hbm_operation *next;    /* in the communicator's queue */
    _Atomic int status;     /* HBM_PENDING from its start until it is complete */
    advance advance;
    uint64_t sequence, block; /* its number among the communicator's calls; bytes of one block */
    /* where its algorithm is */
    int stage, peer, step;
    uint64_t piece, pieces, given; /* given: put into staging buffers, where others are taken too */
    /* what it found out */
    int sends_from_arena, receives_in_arena, streaming, in_turn;
    uint64_t received, recv_place; /* bytes of what this rank receives; its offset in the arena */
    uint32_t flags;            /* what all ranks posted, once they have met; of post_flags */
    uint32_t offer, seen;      /* how this rank gives, and how those did from whom it took */
    uint64_t send_at, recv_at; /* as posts say it: offsets of arrays in the arena, or addresses */
    uint64_t room;             /* bytes of one staging buffer */
    const hbm_group *led;   /* in a tree */
    uint32_t hops;
    /* of those that are started now and completed later */
    int is_flying;
    _Atomic int references;    /* of who made it, and of the queue while it is in flight */
    _Atomic uint64_t request;  /* MPI's handle for it; 0: none */
    _Atomic uint16_t uses;     /* how often its memory has served a call that was started once */
};

/* What a rank waits for. */
typedef struct {
    int peer;
    const _Atomic uint64_t *value;
    uint64_t target;
} awaited;

typedef struct {
    control *control;
    unsigned char *ordinary, *arrays;
    uint64_t ordinary_bytes, array_bytes;
    uintptr_t claim;
    int pid, node;
} peer;

struct hbm_comm {
    int rank, size, oversubscribed;
    uint32_t boot;
    hbm_tuning tuning;
    control *own;
    peer *peers;
    hbm_groups groups;
    uint64_t sequence, chain;   /* of the last call that began */
    uint64_t *known;            /* calls that each rank has completed, as far as is known */
    unsigned char readers[SLOTS]; /* of the posts in each slot, see post.c */
    int roots[SLOTS];
    hbm_heap *heap;             /* of this rank's ordinary memory; its staging is at an offset in it */
    uint64_t staging, staged;   /* pieces that it has put into its staging */
    uint64_t reduced;           /* buffers of it that reductions have filled */
    hbm_heap *arrays;
    struct held {               /* what peers may still write into, though its call failed */
        struct held *next;
        uint64_t id;
    } *held;
    int reads_private;          /* ranks may read each other's private memory */
    uint64_t link_bytes;        /* bytes of messages that this rank read from or wrote to other
                                   nodes; no control words */
    int elsewhere;              /* ranks that are on other nodes than this one */
    const void **in;            /* room for one pointer for each rank */
    void **out;
    hbm_operation *head, *tail; /* operations in flight: only the first advances */
    awaited awaiting;
    uint64_t looked;            /* when somebody last looked whether that can come */
    int ring_later;
    _Atomic int lock, references;
    _Atomic int flying;         /* operations in flight that nobody waits for in a blocking call */
    int is_listed;
    hbm_comm *next_listed;
    unsigned forks;
    int is_closed;
    hbm_failure failure;
    COUNTERS
};

/* wait.c */
int hbm_await(hbm_comm *c);
void hbm_look(hbm_comm *c);
void hbm_ring(hbm_comm *c);
uint64_t hbm_now_ns(void);

/* failure.c */
int hbm_fail(hbm_comm *c, const hbm_failure *why);
int hbm_blame(hbm_comm *c, int status, int rank);
int hbm_blame_lengths(hbm_comm *c, int rank, uint64_t given, uint64_t expected);
int hbm_trouble(hbm_comm *c, int rank, hbm_failure *why);
int hbm_mismatch(hbm_comm *c, int rank);
void hbm_hold_back(hbm_operation *o);
int hbm_was_left(hbm_operation *o);

/* progress.c */
int hbm_enter_call(hbm_comm *c);
void hbm_leave_call(hbm_comm *c);
int hbm_enter_start(hbm_comm *c);
int hbm_enter_wait(hbm_comm *c);
void hbm_leave_wait(hbm_comm *c);
void hbm_lock_again(hbm_comm *c);
void hbm_unlock(hbm_comm *c);
void hbm_append(hbm_operation *o);
void hbm_let_fly(hbm_operation *o);
void hbm_unlist(hbm_comm *c);
int hbm_complete(hbm_operation *o);
void hbm_progress(hbm_comm *c);
void hbm_progress_others(const hbm_comm *waiting);

/* comm.c, operation.c */
void hbm_release(hbm_comm *c);
int hbm_prepare(hbm_operation *o);

/* mpi.c */
int hbm_has_mpi(void);
void hbm_progress_mpi(void);
void hbm_watch(void);
void hbm_complete_request(uintptr_t request);
void hbm_begin_request(hbm_operation *o, uintptr_t request);
void hbm_end_request(hbm_operation *o);
void hbm_free_request(hbm_operation *o, uintptr_t request);

/* post.c */
int hbm_begin(hbm_operation *o, int readers);
void hbm_read_by(hbm_operation *o, int readers);
void hbm_post(hbm_operation *o, const void *data, uint64_t bytes, uint32_t flags);
void hbm_record(hbm_operation *o, int record, uint32_t flags);
unsigned char *hbm_room(hbm_operation *o, int record, uint64_t offset, uint64_t bytes);
const unsigned char *hbm_data(const hbm_operation *o, int rank, const post *p, uint64_t offset,
                              uint64_t bytes);
int hbm_met(hbm_operation *o, int peer, int record, const post **found);
int hbm_is_through(hbm_operation *o, int rank, uint64_t sequence);
/* Who reads a post: nobody (any more), mates of the exchange, parent and children in the root's tree,
   those that a grid has in one row or column, the root, or any rank. */
enum { READ_BY_NOBODY, READ_BY_GROUPS, READ_BY_TREE, READ_BY_GRID, READ_BY_ROOT, READ_BY_ALL };

/* sync.c */
int hbm_enter(hbm_operation *o);
int hbm_sync(hbm_operation *o, uint64_t step);
void hbm_arrive(hbm_operation *o, uint64_t step);

/* paths.c: the one place that decides how an operation is done */
advance hbm_path(hbm_operation *o);
advance hbm_agreed_path(hbm_operation *o);
int hbm_reads_memory(const hbm_operation *o);

/* unpack.c */
void hbm_unpack(const hbm_call *call);

/* fold.c, fold_sve.c, dtype.c, combine.c */
#define FOLD_INS 4 /* a folding takes 2 to 4 inputs at once */
typedef void (*hbm_folding)(void *out, const void *const *in, int ins, uint64_t n);
extern const hbm_folding hbm_foldings[HBM_DTYPES][HBM_REDUCTIONS];
extern const hbm_folding hbm_foldings_sve[HBM_DTYPES][HBM_REDUCTIONS];
hbm_folding hbm_folding_of(int dtype, int reduction);
int hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                uint64_t offset, uint64_t bytes, int how); /* offset, bytes: of each array */
/* half.c */
void hbm_widen_float16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_float16(uint16_t *to, const float *from, uint64_t n);
void hbm_widen_bfloat16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_bfloat16(uint16_t *to, const float *from, uint64_t n);

static inline uint64_t entry_bytes(const hbm_call *call)
{
    return call->entry_bytes ? call->entry_bytes : hbm_dtype_size(call->dtype);
}

static inline uint64_t at_step(const hbm_operation *o, uint64_t step)
{
    return o->sequence << STEP_BITS | step;
}

/* A message that this rank read from, or wrote to, another's memory. */
static inline void count_from(hbm_comm *c, int rank, uint64_t bytes)
{
    if (c->elsewhere && c->peers[rank].node != c->peers[c->rank].node)
        c->link_bytes += bytes;
    count_data(c, rank, bytes);
}

/* Folds bytes of the arrays that are in c->in into some outputs. */
static inline int fold_into(hbm_operation *o, int ins, void *const *out, int outs, uint64_t offset,
                            uint64_t bytes, int how)
{
    count_folded(o->comm, bytes * (uint64_t)ins);
    return hbm_combine(&o->call, o->comm->in, ins, out, outs, offset, bytes, how);
}

/* Whether a peer's word has got to a target; if not, this is what the rank waits for. */
static inline int reached(hbm_operation *o, int rank, const word *w, uint64_t target)
{
    if (atomic_load_explicit(&w->value, memory_order_acquire) >= target) {
        count_word(o, rank, w, target);
        return 1;
    }
    o->comm->awaiting = (awaited){rank, &w->value, target};
    return 0;
}

/* Let others see that this rank has got to a step. */
static inline void signal_step(hbm_operation *o, word *w, uint64_t step)
{
    set_word_hops(o, w, step);
    atomic_store_explicit(&w->value, at_step(o, step), memory_order_release);
    o->comm->ring_later = 1;
}

#endif
