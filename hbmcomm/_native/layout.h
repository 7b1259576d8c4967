/* The control block: the words by which one rank of a communicator talks to the others.

   Each rank owns one, in ordinary memory that all map. Every word has one writer, the owner, but for
   `asleep` and `stopped`, of which each rank writes its own byte. Words that others wait for have a
   cache line each and never fall. docs/synchronisation.md says which store pairs with which load. */
#ifndef HBMCOMM_LAYOUT_H
#define HBMCOMM_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "counters.h"
#include "interface.h"

#define LINE 64
#define PAGE 4096
#define MAX_RANKS 1024
#define SLOTS 8       /* calls that a rank may be ahead of those who read its posts */
#define HISTORY 16    /* calls that a rank remembers: all in which others may still be, and more */
#define SLOT_BYTES 32768 /* of data that goes with the posts of one call */
#define RECORDS 8     /* posts of one call: the rank's own, and one for each group it is in */
#define INLINE_BYTES 80
#define COLOURS 32    /* ranks whose posts begin in different cache sets */

/* How far a rank is in call s: (s << STEP_BITS | steps); never falls. */
#define STEP_BITS 20
#define LAST_STEP ((1u << STEP_BITS) - 1)

typedef struct {
    _Alignas(LINE) _Atomic uint64_t value;
    HOPS_OF_WORD
} word;

/* What a rank contributes to a call, and where it is; `sequence` is stored last. */
typedef struct {
    _Alignas(LINE) _Atomic uint64_t sequence;
    _Atomic uint64_t chain; /* hash of all calls so far, this one included */
    uint64_t send, recv;    /* offsets or addresses, as the flags say */
    uint32_t flags, spare;
    uint64_t bytes;         /* of the data that is offered */
    _Alignas(16) unsigned char data[INLINE_BYTES];
    HOPS_OF_POST
} post;

_Static_assert(sizeof(post) == 2 * LINE + HOPS_BYTES, "a post has two cache lines");

enum post_flags {
    /* how others get what this rank sends: one of these */
    IN_SLOT = 1,         /* it is in the post or the slot's data */
    IN_ARENA = 2,        /* at offset `send` of its array memory */
    IN_PRIVATE = 4,      /* at address `send`, by process_vm_readv */
    IN_STAGING = 8,      /* in pieces, in its staging buffers */
    /* and of where it receives */
    RECV_IN_ARENA = 16,  /* at offset `recv` of its array memory */
    SAME_PLACES = 32,    /* all ranks have the same offsets (in records: of a group) */
    PUSHED = 64          /* it is where the root receives it already */
};

/* For the report of calls that differ. */
typedef struct {
    _Atomic uint64_t sequence, what, count;
} past_call;

typedef struct {
    word ready;           /* pieces that this rank offers, or parts that it has done */
    word done;            /* pieces that it has taken */
    word calls;           /* calls that it has completed; no steps */
    word staging;         /* 1 and the offset of its staging buffers; 0 as long as it has none */
    word sync[RECORDS];   /* barriers within a call */
    _Alignas(LINE) _Atomic uint32_t bell; /* rung for those who sleep until this rank moves */
    _Alignas(LINE) _Atomic uint32_t failed;
    hbm_failure failure;  /* written before `failed` */
    past_call history[HISTORY];
    _Alignas(LINE) _Atomic unsigned char asleep[MAX_RANKS];
    _Alignas(LINE) _Atomic unsigned char stopped[MAX_RANKS]; /* its calls failed for that rank */
    _Alignas(LINE) post posts[RECORDS][SLOTS];
} control;

/* After it, SLOTS times SLOT_BYTES of data, which go with the posts. */
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
