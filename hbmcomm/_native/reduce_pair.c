/* Reduce of two ranks whose arrays the other cannot reach, each with a CPU of its own: one copies its
   input into staging buffers, piece by piece, while the root folds the piece before.

   From call to call too, each piece goes into the next buffer, as in pieces.c. `ready` counts the
   pieces that are in the buffers, `done` those that the root has folded. Both ranks have met, so that
   nobody reads the buffers for an earlier call. */
#include "slices.h"
#include "paths.h"

enum { BEGINNING, COPYING };

static uint64_t buffers(const hbm_operation *o) { return RING / o->room; }

static uint64_t place_of(const hbm_operation *o)
{
    return (o->comm->reduced + o->piece) % buffers(o) * o->room;
}

static int put(hbm_operation *o, uint64_t at, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    int root = o->call.root;
    if (o->piece >= buffers(o)
        && !reached(o, root, &c->peers[root].control->done, at_step(o, o->piece - buffers(o) + 1)))
        return HBM_PENDING;
    hbm_copy(c->peers[c->rank].ordinary + c->staging + place_of(o),
             (const char *)o->call.send + at, bytes);
    signal_step(o, &c->own->ready, o->piece + 1);
    return HBM_OK;
}

static int fold(hbm_operation *o, uint64_t at, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    int other = 1 - c->rank;
    if (!reached(o, other, &c->peers[other].control->ready, at_step(o, o->piece + 1)))
        return HBM_PENDING;
    void *out = (char *)o->call.recv + at;
    c->in[c->rank] = (const char *)o->call.send + at;
    c->in[other] = hbm_staged(o, other, place_of(o), bytes);
    if (!c->in[other])
        return c->failure.status;
    count_from(c, other, bytes);
    int status = fold_into(o, 2, &out, 1, 0, bytes, IN_ORDER);
    signal_step(o, &c->own->done, o->piece + 1);
    return status;
}

int hbm_reduce_pair(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int at_root = c->rank == o->call.root;
    if (o->stage == BEGINNING) {
        int status = at_root ? HBM_OK : hbm_has_staging(o);
        if (status)
            return status;
        o->room = overlapping_piece(o->block); /* whole entries, whatever their type */
        o->pieces = (o->block + o->room - 1) / o->room;
        o->stage = COPYING;
    }
    for (; o->piece < o->pieces; o->piece++) {
        uint64_t at = o->piece * o->room, bytes = o->block - at < o->room ? o->block - at : o->room;
        int status = (at_root ? fold : put)(o, at, bytes);
        if (status)
            return status;
        hbm_ring(c);
    }
    c->reduced += o->pieces; /* on both alike */
    return HBM_OK;
}
