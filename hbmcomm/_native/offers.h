/* Offers: how others get what a rank gives. Each rank chooses for itself; its post says how.

   In the slot, data is copied and the giver goes on at once. Of an array in the arena, or of private
   memory where ranks may read each other's, only the place is posted: the giver waits until those
   who take it have. Else it goes through staging buffers, piece by piece. */
#ifndef HBMCOMM_OFFERS_H
#define HBMCOMM_OFFERS_H

#include "comm.h"

#define STAGING_BYTES (4 * 1024 * 1024)
#define STAGING_DEPTH 4 /* buffers of a giver, at least */

enum { BY_REFERENCE = IN_ARENA | IN_PRIVATE };

/* offers.c */
uint32_t hbm_offer(hbm_operation *o, uint64_t bytes);
int hbm_has_staging(hbm_operation *o);
void *hbm_array(hbm_operation *o, int rank, uint64_t at, uint64_t offset, uint64_t bytes);
void *hbm_staged(hbm_operation *o, int rank, uint64_t offset, uint64_t bytes);
int hbm_take_from(hbm_operation *o, int rank, const post *p, uint64_t offset, void *to,
                  uint64_t bytes);
void hbm_done_taking(hbm_operation *o);

static inline void count_to(hbm_comm *c, int rank, uint64_t bytes)
{
    if (c->elsewhere && c->peers[rank].node != c->peers[c->rank].node)
        c->link_bytes += bytes;
    count_written(c, rank, bytes);
}

static inline int goes_in_turn(const hbm_operation *o, uint64_t bytes)
{
    return o->in_turn && bytes >= TURN_LEAST;
}

/* Copies from memory that another rank has written: an array, or, just now, staging buffers. */
static inline void copy_from(const hbm_operation *o, void *to, const void *from, uint64_t bytes)
{
    (o->streaming ? hbm_stream : goes_in_turn(o, bytes) ? hbm_copy_in_turn : hbm_copy)(to, from, bytes);
}

static inline void copy_staged(const hbm_operation *o, void *to, const void *from, uint64_t bytes)
{
    (o->streaming ? hbm_stream : o->in_turn ? hbm_copy_in_turn : hbm_copy)(to, from, bytes);
}

/* How arrays that other ranks have written are folded. */
static inline int how_to_fold(const hbm_operation *o, uint64_t bytes)
{
    return o->streaming ? STREAMING : goes_in_turn(o, bytes) ? IN_TURN : IN_ORDER;
}

/* The ranks after this one first, so that not all read from the same. */
static inline int next_of(const hbm_operation *o, int i)
{
    int r = o->comm->rank + i;
    return r < o->comm->size ? r : r - o->comm->size;
}

#endif
