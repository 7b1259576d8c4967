/* Reduce and allreduce of two ranks that cannot access each other's arrays, each with a CPU of its
   own. The sender copies its input into staging buffers, piece by piece, while the other rank
   reduces the piece before. In an allreduce both ranks do both, a few pieces ahead: each reduces
   the whole message, and no result crosses.

   Ordering: `ready` counts the pieces in the buffers, and is stored with release after them; `done`
   counts those that the other rank has reduced, and is stored with release after its reads. Both
   ranks have passed hbm_enter(), so nobody reads the buffers for an earlier call. In place, a piece
   of the output overwrites that of the input, which is already in the buffers. Each call continues
   with the next buffer, as in pieces.c.

   Model: algorithms/reduce_pair.pml */
#include "algorithms/algorithms.h"
#include "comm/bell.h"
#include "algorithms/pieces.h"
#include "algorithms/rendezvous.h"

#define AHEAD 4 /* pieces that a rank puts before it reduces one */

enum { BEGINNING, COPYING };

static uint64_t buffers(const hbm_operation *o) { return RING / o->room; }

int hbm_pair_has_room(const hbm_operation *o)
{
    return room_for(o, o->block, overlapping_piece(o->block)) <= RING / AHEAD;
}

static uint64_t offset_of(const hbm_operation *o, uint64_t piece)
{
    return (o->comm->reduced + piece) % buffers(o) * o->room;
}

static uint64_t bytes_of(const hbm_operation *o, uint64_t piece)
{
    uint64_t at = piece * o->room;
    return o->block - at < o->room ? o->block - at : o->room;
}

static int put(hbm_operation *o, uint64_t piece)
{
    hbm_comm *c = o->comm;
    int other = 1 - c->rank;
    if (piece >= buffers(o)
        && !reached(o, other, &c->peers[other].control->done, at_step(o, piece - buffers(o) + 1)))
        return HBM_PENDING;
    hbm_copy(c->peers[c->rank].ordinary + c->staging + offset_of(o, piece),
             (const char *)o->call.send + piece * o->room, bytes_of(o, piece));
    signal_step(o, &c->own->ready, piece + 1);
    hbm_ring(c);
    return HBM_OK;
}

static int reduce_piece(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int other = 1 - c->rank;
    uint64_t at = o->piece * o->room, bytes = bytes_of(o, o->piece);
    if (!reached(o, other, &c->peers[other].control->ready, at_step(o, o->piece + 1)))
        return HBM_PENDING;
    void *out = (char *)o->call.recv + at;
    c->in[c->rank] = (const char *)o->call.send + at;
    c->in[other] = hbm_staged(o, other, offset_of(o, o->piece), bytes);
    if (!c->in[other])
        return c->failure.status;
    count_from(c, other, bytes);
    int status = reduce_into(o, 2, &out, 1, 0, bytes, IN_ORDER);
    signal_step(o, &c->own->done, o->piece + 1);
    hbm_ring(c);
    return status;
}

int hbm_reduce_pair(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int is_all = o->call.operation == HBM_ALLREDUCE, at_root = c->rank == o->call.root;
    int gives = is_all || !at_root, reduces = is_all || at_root;
    int status = HBM_OK;
    if (o->stage == BEGINNING) {
        status = gives ? hbm_allocate_staging(o, RING) : HBM_OK;
        if (status)
            return status;
        o->room = room_for(o, o->block, overlapping_piece(o->block));
        o->pieces = (o->block + o->room - 1) / o->room;
        o->given = 0;
        o->stage = COPYING;
    }
    do {
        uint64_t most = reduces && o->piece + AHEAD < o->pieces ? o->piece + AHEAD : o->pieces;
        for (status = HBM_OK; gives && !status && o->given < most; o->given += !status)
            status = put(o, o->given);
        if (reduces)
            status = reduce_piece(o);
        if (status)
            return status;
        o->piece++;
    } while (reduces && o->piece < o->pieces);
    c->reduced += o->pieces; /* the same on both ranks */
    return HBM_OK;
}
