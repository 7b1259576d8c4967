/* Reduce and allreduce of two ranks whose arrays the other cannot reach, each with a CPU of its own:
   the one that gives copies its input into staging buffers, piece by piece, while the other folds the
   piece before. In an allreduce both do both, a few pieces ahead: each folds all of it, and no result
   crosses.

   From call to call too, each piece goes into the next buffer, as in pieces.c. `ready` counts the
   pieces that are in the buffers, `done` those that the other has folded. Both ranks have met, so that
   nobody reads the buffers for an earlier call. In place, a piece of the output overwrites that of the
   input, which is in the buffers by then. */
#include "slices.h"
#include "paths.h"

#define AHEAD 4 /* pieces that a rank gives before it folds one */

enum { BEGINNING, COPYING };

static uint64_t buffers(const hbm_operation *o) { return RING / o->room; }

static uint64_t place_of(const hbm_operation *o, uint64_t piece)
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
    hbm_copy(c->peers[c->rank].ordinary + c->staging + place_of(o, piece),
             (const char *)o->call.send + piece * o->room, bytes_of(o, piece));
    signal_step(o, &c->own->ready, piece + 1);
    hbm_ring(c);
    return HBM_OK;
}

static int fold(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int other = 1 - c->rank;
    uint64_t at = o->piece * o->room, bytes = bytes_of(o, o->piece);
    if (!reached(o, other, &c->peers[other].control->ready, at_step(o, o->piece + 1)))
        return HBM_PENDING;
    void *out = (char *)o->call.recv + at;
    c->in[c->rank] = (const char *)o->call.send + at;
    c->in[other] = hbm_staged(o, other, place_of(o, o->piece), bytes);
    if (!c->in[other])
        return c->failure.status;
    count_from(c, other, bytes);
    int status = fold_into(o, 2, &out, 1, 0, bytes, IN_ORDER);
    signal_step(o, &c->own->done, o->piece + 1);
    hbm_ring(c);
    return status;
}

int hbm_reduce_pair(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int is_all = o->call.operation == HBM_ALLREDUCE, at_root = c->rank == o->call.root;
    int gives = is_all || !at_root, folds = is_all || at_root;
    int status = HBM_OK;
    if (o->stage == BEGINNING) {
        status = gives ? hbm_has_staging(o) : HBM_OK;
        if (status)
            return status;
        o->room = overlapping_piece(o->block); /* whole entries, whatever their type */
        o->pieces = (o->block + o->room - 1) / o->room;
        o->given = 0;
        o->stage = COPYING;
    }
    do {
        uint64_t most = folds && o->piece + AHEAD < o->pieces ? o->piece + AHEAD : o->pieces;
        for (status = HBM_OK; gives && !status && o->given < most; o->given += !status)
            status = put(o, o->given);
        if (folds)
            status = fold(o);
        if (status)
            return status;
        o->piece++;
    } while (folds && o->piece < o->pieces);
    c->reduced += o->pieces; /* on both alike */
    return HBM_OK;
}
