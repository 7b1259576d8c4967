/* The state of one rank in a communicator, an operation in flight, and the reads and writes of the
   words of layout.h.

   An algorithm is a function that advances an operation. It returns HBM_PENDING where it must wait
   (and has set `awaiting`), HBM_OK when this rank's part is complete, or the status of a failure.
   It is called again until it returns something other than HBM_PENDING. Its state is in the
   operation.

   Model: algorithms/passing.pml */
#ifndef HBMCOMM_COMM_H
#define HBMCOMM_COMM_H

#include "comm/groups.h"
#include "layout.h"

typedef int (*advance)(hbm_operation *o);

struct hbm_operation {
    hbm_comm *comm;
    hbm_call call;
    hbm_operation *next;    /* in the communicator's queue */
    _Atomic int status;     /* HBM_PENDING from its start until it is complete */
    advance advance;
    uint64_t sequence, block; /* its number among the communicator's calls; bytes of one block */
    /* the state of its algorithm */
    int stage, peer, step;
    uint64_t piece, pieces;
    uint64_t given;            /* pieces put into staging buffers, if counted apart from `piece` */
    /* facts about this call */
    int sends_from_arena, receives_in_arena, streaming, in_turn;
    int is_note;               /* hbm_note(): MPI serves it */
    int reads_memory;          /* it reads more of other ranks than their slots */
    int is_written;            /* others may write into its private memory */
    uint64_t received, recv_offset; /* bytes that this rank receives; their offset in the arena */
    uint32_t flags;            /* post_flags that all ranks posted, once hbm_enter() is complete */
    uint32_t offer, seen;      /* the offer of this rank; the offers that it has taken from */
    uint64_t send_at, recv_at; /* the values in this rank's posts: arena offsets or addresses */
    uint64_t room;             /* bytes of one staging buffer */
    const hbm_group *led;      /* in a tree: the largest group done so far that this rank leads */
    uint32_t hops;
    /* for operations that are started now and completed later */
    int is_in_flight;
    _Atomic int references;    /* from its owner, its queue while in flight, and MPI's request */
    _Atomic uint64_t request;  /* MPI's handle for it; 0: none; see requests.c */
    int is_unended;            /* another thread must end its request (requests.c) */
    hbm_operation *next_unended;
    uint64_t index;            /* of its memory in the pool */
    _Atomic uint64_t uses;     /* how often its memory has served hbm_start_once() */
};

/* The word that a rank waits for. */
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

/* What a communicator of several hosts does in the place of the core (hosts/hosts.c). `wait` returns
   what hbm_await() does. */
typedef struct {
    advance advance;
    int (*wait)(hbm_comm *c);
    void (*fail)(hbm_comm *c);
    void (*free)(hbm_comm *c);
} hbm_served_by;

struct hbm_comm {
    const hbm_served_by *by;    /* NULL: all ranks share memory */
    struct hbm_hosts *hosts;
    int rank, size, oversubscribed;
    uint32_t boot;
    hbm_tuning tuning;
    control *own;
    peer *peers;
    hbm_groups groups;
    uint64_t sequence, chain;   /* of the last call that began */
    uint64_t *known;            /* the last value read of each rank's `calls` */
    uint64_t posted[SLOTS];     /* the call of the posts in each slot; 0: none yet */
    unsigned char readers[SLOTS]; /* the readers of those: READ_BY_... */
    int roots[SLOTS];
    hbm_heap *heap;             /* this rank's ordinary memory, which holds its staging buffers */
    uint64_t staging;           /* their offset in it */
    uint64_t staging_populated; /* bytes of them, from that offset on */
    uint64_t shared_room;       /* as shared_room_of() */
    uint64_t user_room;         /* bytes of an entry of a program's function, at most */
    uint64_t staged;            /* pieces put into them so far */
    uint64_t reduced;           /* buffers of them that reductions have filled so far */
    hbm_heap *arrays;
    struct held {               /* memory that peers may still write into after a failure */
        struct held *next;
        uint64_t id;
    } *held;
    int same_pids;              /* PIDs of ranks mean the same to all of them */
    int reads_private;          /* ranks may read each other's private memory; -1: not looked at */
    uint64_t link_bytes;        /* bytes of messages read from or written to other nodes; no control
                                   words */
    int elsewhere;              /* number of ranks on other nodes */
    const void **in;            /* room for one pointer for each rank */
    void **out;
    hbm_operation *head, *tail; /* operations in flight: only the first advances */
    awaited awaiting;
    uint64_t looked;            /* time of the last check whether that word can still come */
    int ring_later;             /* words were stored since the last hbm_ring() */
    _Atomic int lock, references;
    int *sleepers;              /* by rank: threads of this process that sleep on it */
    atomic_flag counting;       /* guards `sleepers` and the byte of this rank in `asleep` */
    _Atomic int in_flight;         /* operations in flight outside blocking calls */
    int is_listed;
    uint64_t number_listed;        /* in the list of in_flight.c: the first has the highest */
    hbm_comm *next_listed;
    unsigned forks;
    int is_closed;
    hbm_failure failure;
    COUNTERS
};

/* See is_served() in operation.c. */
static inline uint64_t shared_room_of(int ranks)
{
    return STAGING_BYTES / STAGING_DEPTH / 2 / (uint64_t)ranks;
}

/* Drops one reference to a communicator; the last one frees it. */
void hbm_release(hbm_comm *c);

/* The thresholds of an operation. Calls of Python objects send blocks that wait for nobody, whatever
   a user has set for arrays. */
#define LEAST_OF_OBJECTS 2048

static inline uint64_t of_objects(const hbm_operation *o, uint64_t bytes)
{
    return o->call.reduction >= HBM_OBJECTS && bytes < LEAST_OF_OBJECTS ? LEAST_OF_OBJECTS : bytes;
}

static inline uint64_t eager_bytes(const hbm_operation *o)
{
    return of_objects(o, o->comm->tuning.eager_bytes);
}

static inline uint64_t short_bytes(const hbm_operation *o)
{
    return of_objects(o, o->comm->tuning.short_bytes);
}

static inline uint64_t at_step(const hbm_operation *o, uint64_t step)
{
    return o->sequence << STEP_BITS | step;
}

/* Count a message that this rank reads from or writes to another rank's memory. */
static inline void count_from(hbm_comm *c, int rank, uint64_t bytes)
{
    if (c->elsewhere && c->peers[rank].node != c->peers[c->rank].node)
        c->link_bytes += bytes;
    count_data(c, rank, bytes);
}

static inline void count_to(hbm_comm *c, int rank, uint64_t bytes)
{
    if (c->elsewhere && c->peers[rank].node != c->peers[c->rank].node)
        c->link_bytes += bytes;
    count_written(c, rank, bytes);
}

static inline int arrived(const awaited *a)
{
    return atomic_load_explicit(a->value, memory_order_acquire) >= a->target;
}

/* Whether a peer's word has reached a target; if not, the rank waits for it. The acquire makes all
   that the peer wrote before its release store visible. */
static inline int reached(hbm_operation *o, int rank, const word *w, uint64_t target)
{
    if (atomic_load_explicit(&w->value, memory_order_acquire) >= target) {
        count_word(o, rank, w, target);
        return 1;
    }
    o->comm->awaiting = (awaited){rank, &w->value, target};
    return 0;
}

/* Show others that this rank has reached a step. The release publishes all that it wrote before. The
   fence is for data that it read from a rank and passes on: if that rank had failed, and its program
   had changed the data, then those who take them here see `failed` as well (hbm_was_abandoned). */
static inline void signal_step(hbm_operation *o, word *w, uint64_t step)
{
    set_word_hops(o, w, step);
    atomic_thread_fence(memory_order_acquire);
    atomic_store_explicit(&w->value, at_step(o, step), memory_order_release);
    o->comm->ring_later = 1;
}

#endif
