/* Blocks that go through staging buffers, in lockstep: a giver fills a buffer again once all who take
   have taken the piece that was in it; a taker takes piece k from all who stage before piece k + 1.

   A giver's `ready` counts the pieces that it has put, a taker's `done` those that it has taken from
   everyone.

   From call to call a giver goes round in its buffers, and posts with which it begins: to write into
   lines that others have just read takes twice as long as into others. */
#include "parts.h"

#define PIECE (64 * 1024)

static uint64_t slices_of(const hbm_operation *o)
{
    return gives_to_each(o) ? (uint64_t)o->comm->size : 1;
}

static uint64_t count(const hbm_operation *o, uint64_t bytes) { return (bytes + o->room - 1) / o->room; }

static uint64_t bytes_of(const hbm_operation *o, uint64_t bytes)
{
    uint64_t at = o->piece * o->room;
    return bytes <= at ? 0 : bytes - at < o->room ? bytes - at : o->room;
}

/* Pieces that a giver may be ahead of those who take them. */
static uint64_t depth(const hbm_operation *o)
{
    uint64_t buffers = RING / (o->room * slices_of(o));
    return buffers > STAGING_DEPTH ? buffers : STAGING_DEPTH;
}

/* Where the piece for a taker is in a giver's staging; `first` is the buffer that it began with. */
static uint64_t place_of(const hbm_operation *o, uint64_t first, int taker)
{
    uint64_t slice = gives_to_each(o) ? (uint64_t)taker : 0;
    return ((first + o->piece) % depth(o) * slices_of(o) + slice) * o->room;
}

static uint64_t piece_of(const hbm_operation *o)
{
    int operation = o->call.operation, overlaps = operation == HBM_BCAST || operation == HBM_GATHER;
    return overlaps && !o->comm->oversubscribed ? overlapping_piece(o->block) : PIECE;
}

/* How many pieces there are for this rank, once it knows how others offer. */
void hbm_begin_pieces(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    uint64_t grain = LINE * entry_bytes(&o->call); /* no entry lies across two pieces */
    uint64_t most = piece_of(o);
    o->room = STAGING_BYTES / STAGING_DEPTH / slices_of(o);
    o->room = o->room < most ? o->room : most;
    o->room = o->room < grain ? grain / LINE : o->room / grain * grain;
    o->piece = o->pieces = 0;
    for (int r = 0; r < c->size; r++) {
        uint64_t given = 0, taken = 0;
        if (r == c->rank)
            continue;
        if (o->offer == IN_STAGING && takes(o, r))
            given = count(o, part_for(o, r).bytes);
        if (o->seen & IN_STAGING && takes(o, c->rank) && gives(o, r))
            taken = count(o, part_from(o, r).bytes);
        o->pieces = given > o->pieces ? given : o->pieces;
        o->pieces = taken > o->pieces ? taken : o->pieces;
    }
    if (o->offer == IN_STAGING)
        o->comm->staged += o->pieces;
}

/* Whether nobody reads the staging buffers any more for the call before. */
int hbm_staging_is_free(hbm_operation *o)
{
    for (int r = 0; r < o->comm->size; r++)
        if (!hbm_is_through(o, r, o->sequence - 1))
            return 0;
    return 1;
}

/* This rank's part of a piece, for all who take. */
int hbm_produce(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (o->offer != IN_STAGING)
        return HBM_OK;
    if (!o->piece && !hbm_staging_is_free(o))
        return HBM_PENDING;
    for (; o->piece >= depth(o) && o->peer < c->size; o->peer++)
        if (o->peer != c->rank && takes(o, o->peer)
            && !reached(o, o->peer, &c->peers[o->peer].control->done,
                        at_step(o, o->piece - depth(o) + 1)))
            return HBM_PENDING;
    for (int s = 0; s < (int)slices_of(o); s++) {
        hbm_part part = part_for(o, s);
        uint64_t bytes = gives_to_each(o) && s == c->rank ? 0 : bytes_of(o, part.bytes);
        if (bytes)
            hbm_copy(c->peers[c->rank].ordinary + c->staging + place_of(o, o->send_at, s),
                     (const char *)o->call.send + part.offset + o->piece * o->room, bytes);
    }
    signal_step(o, &c->own->ready, o->piece + 1);
    hbm_ring(c);
    return HBM_OK;
}

/* A piece that another rank stages for this one; of 0 bytes where it has no more, or stages nothing. */
int hbm_has_piece(hbm_operation *o, int giver, const void **from, uint64_t *bytes)
{
    hbm_comm *c = o->comm;
    const post *p;
    const volatile post *posted;
    *bytes = bytes_of(o, part_from(o, giver).bytes);
    if (!*bytes)
        return HBM_OK;
    int status = hbm_met(o, giver, 0, &p);
    if (status)
        return status;
    posted = p;
    if (!(posted->flags & IN_STAGING)) {
        *bytes = 0;
        return HBM_OK;
    }
    if (!reached(o, giver, &c->peers[giver].control->ready, at_step(o, o->piece + 1)))
        return HBM_PENDING;
    *from = hbm_staged(o, giver, place_of(o, posted->send, c->rank), *bytes);
    return *from ? HBM_OK : c->failure.status;
}

void hbm_consumed(hbm_operation *o)
{
    if (o->streaming)
        hbm_stream_end();
    signal_step(o, &o->comm->own->done, o->piece + 1);
    hbm_ring(o->comm);
}
