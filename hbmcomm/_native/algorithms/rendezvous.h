/* Rendezvous: how receivers get the data of a sender. Each sender chooses for itself, and posts its
   choice as an offer.

   Short data is copied into the slot, and the sender continues at once. For an array in the arena,
   or for private memory where ranks may read each other's, the sender posts the address alone and
   waits until the receivers have taken the data. All else goes through staging buffers, piece by
   piece. */
#ifndef HBMCOMM_RENDEZVOUS_H
#define HBMCOMM_RENDEZVOUS_H

#include "algorithms/blocks.h"
#include "comm/comm.h"
#include "comm/private.h"
#include "kernels/copy.h"
#include "kernels/reduction.h"

enum { BY_REFERENCE = IN_ARENA | IN_PRIVATE };

/* Chooses how this rank offers `bytes` that it sends. Does not post them. */
uint32_t hbm_choose_offer(hbm_operation *o, uint64_t bytes);

/* Puts memory under the first `bytes` of this rank's staging buffers, and reserves their place at
   their first use. They stay for later calls. Other ranks access no more of them: a rank that was
   misled by a third one could else touch what has no memory. */
int hbm_allocate_staging(hbm_operation *o, uint64_t bytes);

/* Part of a rank's array in the arena, or of its staging buffers. NULL, and the communicator fails,
   where the rank named memory that is not its own. */
void *hbm_array(hbm_operation *o, int rank, uint64_t at, uint64_t offset, uint64_t bytes);
void *hbm_staged(hbm_operation *o, int rank, uint64_t offset, uint64_t bytes);

/* Takes part of what a rank offers in one piece. `offset` counts from the beginning of its data. */
int hbm_receive(hbm_operation *o, int rank, const post *p, uint64_t offset, void *to,
                  uint64_t bytes);

/* What this rank posts of where it receives: RECV_IN_ARENA, REACHABLE. */
uint32_t hbm_reception(hbm_operation *o);

/* Copies to where a rank receives that posted REACHABLE; hbm_stream_end() is the caller's. Returns
   whether all is written, as hbm_write_private(). */
int hbm_send_into(hbm_operation *o, int rank, const post *p, uint64_t offset, const void *from,
                  uint64_t bytes);

/* Signals the senders that this rank has taken all that it needs. */
void hbm_done_receiving(hbm_operation *o);

/* Whether senders may write a long message into private memory of its receivers, who else have more
   work than they: the root of a Bcast a part, the others of a Gather all of it. */
static inline int may_be_pushed(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int operation = o->call.operation, gathers = is_to_root(o);
    uint64_t bytes = operation == HBM_GATHERV ? o->received : o->block;
    return (operation == HBM_BCAST || gathers) && c->groups.levels == 1
           && c->groups.nodes.count == 1 && c->size <= (int)c->tuning.push_ranks
           && bytes >= c->tuning.push_bytes && hbm_reads_private(o->comm);
}

static inline int goes_in_turn(const hbm_operation *o, uint64_t bytes)
{
    return o->in_turn && bytes >= TURN_LEAST;
}

/* Copies from memory that another rank has written: its array, or its staging buffers. */
static inline void copy_from(const hbm_operation *o, void *to, const void *from, uint64_t bytes)
{
    int turns = goes_in_turn(o, bytes);
    (o->streaming ? hbm_stream : turns ? hbm_copy_in_turn : hbm_copy)(to, from, bytes);
}

static inline void copy_staged(const hbm_operation *o, void *to, const void *from, uint64_t bytes)
{
    (o->streaming ? hbm_stream : o->in_turn ? hbm_copy_in_turn : hbm_copy)(to, from, bytes);
}

/* How to reduce arrays that other ranks have written. */
static inline int how_to_reduce(const hbm_operation *o, uint64_t bytes)
{
    return o->streaming ? STREAMING : goes_in_turn(o, bytes) ? IN_TURN : IN_ORDER;
}

/* Reduces a range of the inputs in comm->in into the outputs. */
static inline int reduce_into(hbm_operation *o, int ins, void *const *out, int outs,
                              uint64_t offset, uint64_t bytes, int how)
{
    count_reduced(o->comm, bytes * (uint64_t)ins);
    return hbm_combine(&o->call, o->comm->in, ins, out, outs, offset, bytes, how);
}

/* Begins with the rank after this one, so that not all ranks read from the same one at once. */
static inline int next_of(const hbm_operation *o, int i)
{
    int r = o->comm->rank + i;
    return r < o->comm->size ? r : r - o->comm->size;
}

#endif
