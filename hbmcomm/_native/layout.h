/* The control block: the words with which one rank of a communicator signals the others.

   Each rank owns one, in ordinary memory that all ranks map. Every word has one writer, its owner.
   The exceptions are `asleep` and `stopped`, where each rank writes its own byte. Words that others
   wait for have a cache line each and never decrease. docs/synchronisation.md lists which store
   pairs with which load. */
#ifndef HBMCOMM_LAYOUT_H
#define HBMCOMM_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "counters.h"

#define LINE 64
#define PAGE 4096
#define MAX_RANKS 1024
#define SLOTS 8       /* calls that a rank may be ahead of the readers of its posts */
#define HISTORY 16    /* calls on record: more than those in which others may still be */
#define SLOT_BYTES 32768 /* of data with the posts of one call */
#define RECORDS 8     /* posts of one call: the rank's own, and one for each of its groups */
#define INLINE_BYTES 80
#define COLOURS 32    /* ranks with posts in different cache sets */

/* Progress of a rank in call s: (s << STEP_BITS | steps); never decreases. */
#ifndef STEP_BITS
#define STEP_BITS 20
#endif
#define LAST_STEP ((1u << STEP_BITS) - 1)
#define MOST_PIECES (LAST_STEP / 2 - 1) /* of one message: a piece has at most two steps */

/* Tests lower the limits of lengths: a build with -DHBM_SHRINK=64 -DSTEP_BITS=8 reaches all of them
   with messages of a few hundred kilobytes. */
#ifndef HBM_SHRINK
#define HBM_SHRINK 1
#endif
#define KIB (1024 / HBM_SHRINK)
#define STAGING_BYTES (4096 * KIB)
#define STAGING_DEPTH 4 /* the least number of buffers of a sender */

typedef struct {
    _Alignas(LINE) _Atomic uint64_t value;
    HOPS_OF_WORD
} word;

/* A rank's contribution to a call: the data or its address. `sequence` is stored last. */
typedef struct {
    _Alignas(LINE) _Atomic uint64_t sequence;
    _Atomic uint64_t chain; /* hash of all calls so far, this one included */
    uint64_t send, recv;    /* offsets or addresses: `flags` decides */
    uint32_t flags, room;   /* room: bytes of a piece in its staging buffers */
    uint64_t bytes;         /* of the offered data */
    _Alignas(16) unsigned char data[INLINE_BYTES];
    HOPS_OF_POST
} post;

_Static_assert(sizeof(post) == 2 * LINE + HOPS_BYTES, "a post has two cache lines");

enum post_flags {
    /* where others get what this rank sends: one of these */
    IN_SLOT = 1,         /* in the post or the slot's data */
    IN_ARENA = 2,        /* at offset `send` of its array memory */
    IN_PRIVATE = 4,      /* at address `send`, by process_vm_readv */
    IN_STAGING = 8,      /* in pieces, in its staging buffers */
    /* where it receives */
    RECV_IN_ARENA = 16,  /* at offset `recv` of its array memory */
    SAME_OFFSETS = 32,    /* all ranks have the same offsets (in a record: those of a group) */
    PUSHED = 64,         /* already in the root's array */
    REACHABLE = 128      /* others may write at `recv`: in the arena, or by process_vm_writev */
};

/* A record of a call, to report calls that differ. */
typedef struct {
    _Atomic uint64_t sequence, what, count;
} past_call;

typedef struct {
    word ready;           /* pieces that this rank offers, or parts that it has finished */
    word done;            /* pieces that it has taken */
    word calls;           /* calls that it has completed; no steps */
    word staging;         /* offset of its staging buffers + pages with memory; 0: it has none yet */
    word sync[RECORDS];   /* barriers within a call */
    _Alignas(LINE) _Atomic uint32_t bell; /* changes before sleepers are woken */
    _Alignas(LINE) _Atomic uint32_t failed;
    hbm_failure failure;  /* written before `failed` */
    _Alignas(LINE) _Atomic uint32_t writing; /* the rank in whose private memory it writes, + 1 */
    _Atomic uint32_t is_refused; /* it may not read every rank's private memory */
    past_call history[HISTORY];
    _Alignas(LINE) _Atomic unsigned char asleep[MAX_RANKS];
    /* by rank: after a failure, it no longer accesses this rank's arrays */
    _Alignas(LINE) _Atomic unsigned char stopped[MAX_RANKS];
    _Alignas(LINE) post posts[RECORDS][SLOTS];
} control;

/* SLOTS times SLOT_BYTES of data for the posts follow the control block. */
#define DATA_OFFSET ((sizeof(control) + PAGE - 1) / PAGE * PAGE)

static inline unsigned char *slot_data(const control *owner, uint64_t sequence)
{
    return (unsigned char *)owner + DATA_OFFSET + sequence % SLOTS * SLOT_BYTES;
}

static inline post *post_of(control *owner, int record, uint64_t sequence)
{
    return &owner->posts[record][sequence % SLOTS];
}

#endif
