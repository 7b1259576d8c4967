/* Reduce-scatter: each rank takes its block from every rank, as that rank offers it, and reduces
   these blocks in the order of the ranks. Its reads are those of an alltoall.

   Ordering: rendezvous.c and pieces.c have it for offers and pieces. */
#include "algorithms/reduce.h"
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "algorithms/blocks.h"
#include "comm/failure.h"
#include "algorithms/pieces.h"
#include "algorithms/post_offer.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

enum { BEGINNING, MEETING, TAKING, PRODUCING, REDUCING, WAITING };

static const void *own_block(const hbm_operation *o)
{
    return (const char *)o->call.send + part_for(o, o->comm->rank).offset;
}

/* Sets c->out[rank] to that rank's block for this one; NULL where the block comes in pieces. */
static int find_block(hbm_operation *o, int rank)
{
    hbm_comm *c = o->comm;
    uint64_t offset = part_for(o, c->rank).offset;
    const post *p;
    int status = hbm_find_post(o, rank, 0, &p);
    if (status)
        return status;
    const volatile post *posted = p;
    uint64_t at = posted->send, all = posted->bytes;
    uint32_t flags = posted->flags;
    o->seen |= flags;
    c->out[rank] = NULL;
    if (flags & IN_ARENA) {
        c->out[rank] = hbm_array(o, rank, at, offset, o->block);
        return c->out[rank] ? HBM_OK : c->failure.status;
    }
    if (flags & IN_SLOT) {
        if (offset + o->block > SLOT_BYTES)
            return hbm_blame(c, HBM_UNTRUSTED, rank);
        c->out[rank] = (unsigned char *)hbm_post_data(o, rank, p, 0, all) + offset;
    }
    return HBM_OK;
}

/* Reduces the current piece of the block. */
static int reduce_piece(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t at = o->piece * o->room;
    uint64_t bytes = o->block <= at ? 0 : o->block - at < o->room ? o->block - at : o->room;
    for (; o->peer < c->size; o->peer++) {
        c->in[o->peer] = o->peer == c->rank ? own_block(o) : c->out[o->peer];
        if (c->in[o->peer] || !bytes)
            continue;
        staged_piece piece;
        int status = hbm_find_piece(o, o->peer, &piece);
        if (status)
            return status;
        if (piece.offset != at || piece.bytes != bytes)
            return hbm_blame(c, HBM_UNTRUSTED, o->peer);
        c->in[o->peer] = (const char *)piece.from - at; /* reduce_into() adds the offset `at` */
    }
    void *out = (void *)o->call.recv;
    int status = reduce_into(o, c->size, &out, 1, at, bytes, how_to_reduce(o, bytes));
    hbm_signal_consumed(o);
    return status;
}

/* Divides what others stage for this rank, and its own block, into pieces. */
static int divide(hbm_operation *o)
{
    int status = hbm_begin_pieces(o), staged = ((o->seen | o->offer) & IN_STAGING) != 0;
    o->room = staged ? hbm_piece_room(o) : o->block + !o->block; /* else it is one piece */
    if (o->pieces < (o->block + o->room - 1) / o->room)
        o->pieces = (o->block + o->room - 1) / o->room;
    return status;
}

int hbm_reduce_scatter(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, READ_BY_ALL);
        if (!status)
            status = hbm_post_offer(o);
        if (status)
            return status;
        o->stage = hbm_agrees(o) ? MEETING : TAKING;
        /* fall through */
    case MEETING:
        status = o->stage == MEETING ? hbm_enter(o) : HBM_OK;
        if (status)
            return status;
        if (o->stage == MEETING && o->flags & IN_ARENA) {
            o->stage = 0;
            o->advance = hbm_reduce_by_nodes;
            return hbm_reduce_by_nodes(o);
        }
        o->stage = TAKING;
        /* fall through */
    case TAKING:
        for (; o->peer < c->size; o->peer++) {
            if (o->peer == c->rank)
                continue;
            status = find_block(o, o->peer);
            if (status)
                return status;
            count_from(c, o->peer, o->block);
        }
        status = divide(o);
        if (status)
            return status;
        o->stage = PRODUCING;
        o->peer = 0;
        /* fall through */
    case PRODUCING:
    case REDUCING:
        while (o->piece < o->pieces) {
            status = o->stage == PRODUCING ? hbm_produce(o) : reduce_piece(o);
            if (status)
                return status;
            o->piece += o->stage == REDUCING;
            o->stage = o->stage == PRODUCING ? REDUCING : PRODUCING;
            o->peer = 0;
        }
        hbm_done_receiving(o);
        o->stage = WAITING;
        /* fall through */
    case WAITING:
        for (; o->offer & (BY_REFERENCE | IN_STAGING) && o->peer < c->size; o->peer++)
            if (o->peer != c->rank
                && !reached(o, o->peer, &c->peers[o->peer].control->done, at_step(o, LAST_STEP)))
                return HBM_PENDING;
    }
    return HBM_OK;
}
