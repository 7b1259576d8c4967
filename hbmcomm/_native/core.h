/* What the C files of the core share: the layout of a segment, one rank's state, and their calls.

   Every rank owns one segment that all ranks map. In it lie the rank's control words, its staging
   buffers and the heap of its arena arrays. A word in a segment is written by its owner alone, but
   for `asleep`, of which each rank writes its own byte. SYNCHRONISATION.md says why it is right. */
#ifndef HBMCOMM_CORE_H
#define HBMCOMM_CORE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "interface.h"

#define LINE 64
#define SLOTS 8              /* calls that a rank may be ahead of another */
#define SLOT_BYTES 32768     /* room of a slot: where ranks share CPUs, to meet again costs most */
#define SHORT_BYTES 8192     /* messages up to this may travel in the slot */
#define EAGER_BYTES 2048     /* and up to this always does: a copy costs less than another meeting */
#define MAX_RANKS 1024
#define CONTROL_BYTES (512 * 1024)
#define STAGING_BYTES (4 * 1024 * 1024)
#define HEAP_OFFSET (CONTROL_BYTES + STAGING_BYTES)

/* A rank's word on its call number `sequence`, which is stored last. */
typedef struct {
    _Alignas(LINE) _Atomic uint64_t sequence;
    uint64_t chain;      /* hash of all calls so far, this one included */
    _Atomic uint64_t what;  /* operation, dtype, reduction and root */
    _Atomic uint64_t count; /* atomic, since a rank that looks back may race with the owner */
    uint64_t send, recv; /* offsets in the owner's segment; 0: not in it */
    _Alignas(16) unsigned char data[SLOT_BYTES]; /* begins in the line of the sequence */
} slot;

typedef struct {
    _Alignas(LINE) _Atomic uint64_t step;      /* parts of long operations that are done */
    _Alignas(LINE) _Atomic uint32_t bell;      /* rung for whoever sleeps until this rank moves */
    _Alignas(LINE) _Atomic uint32_t failed;    /* a status; the record below stands before it */
    hbm_failure failure;
    _Alignas(LINE) _Atomic unsigned char asleep[MAX_RANKS];
    slot slots[SLOTS];
} control;

_Static_assert(sizeof(control) <= CONTROL_BYTES, "the control words outgrew their room");

struct hbm_comm {
    int rank, size, oversubscribed, lock, ring_later;
    unsigned spins;
    uint64_t yield_ns;
    uint64_t sequence, chain, steps;
    uint64_t slowest;          /* every other rank has entered this call */
    uint64_t cache_bytes, segment_bytes;
    uint64_t link_bytes;       /* of messages, short or long: bytes that this rank read from or
                                  wrote to segments of ranks on other nodes; no control words */
    uint64_t looked_ns;        /* when the others were last seen alive */
    control *own;
    control **ranks;
    unsigned char **segments;
    uintptr_t *claims;         /* NULL where ranks hold locks */
    uint32_t boot;
    int *nodes;
    int elsewhere;             /* how many ranks are on other nodes than this one */
    const void **in;           /* room for one pointer per rank */
    void **out;
    _Atomic int busy;
    unsigned forks;
    hbm_failure failure;
};

/* wait.c */
int hbm_await(hbm_comm *c, int peer, const _Atomic uint64_t *word, uint64_t target);
void hbm_ring(hbm_comm *c);
int hbm_fail(hbm_comm *c, const hbm_failure *why);
int hbm_glance(hbm_comm *c);

/* post.c */
int hbm_post(hbm_comm *c, const hbm_call *call, const void *data, uint64_t bytes);
int hbm_is_shared(const hbm_comm *c, uintptr_t address);
int hbm_meet(hbm_comm *c, int peer, const slot **met);
int hbm_meet_all(hbm_comm *c);

/* copy.c */
void hbm_copy(void *to, const void *from, uint64_t bytes);
void hbm_stream(void *to, const void *from, uint64_t bytes);
void hbm_stream_end(void);

/* fold.c */
typedef void (*hbm_folding)(void *out, const void *a, const void *b, uint64_t n);
hbm_folding hbm_folding_of(int dtype, int reduction);
/* half.c */
void hbm_widen_float16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_float16(uint16_t *to, const float *from, uint64_t n);
void hbm_widen_bfloat16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_bfloat16(uint16_t *to, const float *from, uint64_t n);
/* combine.c */
void hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                 uint64_t offset, uint64_t n, int streaming);

/* moves.c, reductions.c: the operations on messages of any length, once all ranks have met */
int hbm_move(hbm_comm *c, const hbm_call *call);
int hbm_reduce(hbm_comm *c, const hbm_call *call);
/* eager.c: the whole of a call whose messages fit a slot */
int hbm_eager(hbm_comm *c, const hbm_call *call);
int hbm_fits(const hbm_comm *c, const hbm_call *call, uint64_t room);

static inline uint64_t bytes_of(const hbm_call *call)
{
    return call->count * hbm_dtype_size(call->dtype);
}

static inline slot *slot_of(control *owner, uint64_t sequence)
{
    return &owner->slots[sequence % SLOTS];
}

static inline unsigned char *staging_of(const hbm_comm *c, int rank)
{
    return c->segments[rank] + CONTROL_BYTES;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* One more part of this call is done here. */
static inline void hbm_step(hbm_comm *c)
{
    c->steps++;
    atomic_store_explicit(&c->own->step, c->steps, memory_order_release);
    hbm_ring(c);
}

static inline int hbm_await_step(hbm_comm *c, int peer, uint64_t step)
{
    return hbm_await(c, peer, &c->ranks[peer]->step, step);
}

#endif
