/* Scan and exscan: messages that fit a slot are read from all lower ranks; longer ones go from rank
   to rank, piece by piece, through the staging buffers of the rank before. The order of operands is
   that of the ranks.

   Ordering: `ready` k + 1 is stored with release after piece k was put into the staging buffers,
   and the next rank loads it with acquire. That rank stores `done` k + 1 with release after it has
   reduced the piece; piece k + depth may then take its offset.

   Models: algorithms/scan.pml, comm/failure.pml */
#include "algorithms/algorithms.h"
#include "comm/bell.h"
#include "kernels/copy.h"
#include "algorithms/pieces.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

#define PIECE (64 * KIB)

enum { BEGINNING, REDUCING };

static int is_scan(const hbm_operation *o) { return o->call.operation == HBM_SCAN; }

int hbm_scan_eager(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int last = is_scan(o) ? c->rank + 1 : c->rank; /* the number of ranks in the result */
    if (!o->stage) {
        int status = hbm_begin_call(o, READ_BY_ALL);
        if (status)
            return status;
        hbm_post(o, (const void *)o->call.send, o->block, IN_SLOT);
        o->stage = REDUCING;
    }
    for (; o->peer < c->rank; o->peer++) {
        const post *p;
        int status = hbm_find_post(o, o->peer, 0, &p);
        if (status)
            return status;
        c->in[o->peer] = hbm_post_data(o, o->peer, p, 0, o->block);
        count_from(c, o->peer, o->block);
    }
    c->in[c->rank] = (const void *)o->call.send;
    void *out = (void *)o->call.recv;
    return last ? reduce_into(o, last, &out, 1, 0, o->block, IN_ORDER) : HBM_OK;
}

/* Bytes from one buffer to the next, and the number of buffers. */
static uint64_t stride(const hbm_operation *o) { return o->room < PIECE ? PIECE : o->room; }

static uint64_t depth(const hbm_operation *o) { return STAGING_BYTES / stride(o); }

/* Puts the result up to this rank into its staging buffers, and its own result into its array. */
static int reduce_piece(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t at = o->piece * o->room, bytes = o->block - at < o->room ? o->block - at : o->room;
    uint64_t offset = o->piece % depth(o) * stride(o);
    const char *own = (const char *)o->call.send + at;
    char *result = (char *)o->call.recv + at;
    char *passed = c->rank + 1 < c->size
                       ? (char *)c->peers[c->rank].ordinary + c->staging + offset : NULL;
    int status = HBM_OK, outs = 0, ins = 0;
    const void *before = NULL;
    if (c->rank) {
        before = hbm_staged(o, c->rank - 1, offset, bytes);
        if (!before)
            return c->failure.status;
        c->in[ins++] = before;
        count_from(c, c->rank - 1, bytes);
    }
    c->in[ins++] = own;
    if (passed)
        c->out[outs++] = passed;
    if (is_scan(o))
        c->out[outs++] = result;
    if (outs)
        status = reduce_into(o, ins, c->out, outs, 0, bytes, IN_ORDER);
    if (status) /* a function of the program may fail: then there is no result to announce */
        return status;
    if (!is_scan(o) && before)
        hbm_copy(result, before, bytes);
    signal_step(o, &c->own->ready, o->piece + 1);
    signal_step(o, &c->own->done, o->piece + 1);
    hbm_ring(c);
    return HBM_OK;
}

int hbm_scan(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int next = c->rank + 1, status;
    if (o->stage == BEGINNING) {
        o->room = room_for(o, o->block, PIECE);
        o->pieces = (o->block + o->room - 1) / o->room;
        uint64_t buffers = o->pieces < depth(o) ? o->pieces : depth(o);
        status = hbm_begin_call(o, READ_BY_ALL);
        if (!status && next < c->size)
            status = hbm_allocate_staging(o, buffers * stride(o));
        if (!status && !hbm_staging_is_free(o))
            status = HBM_PENDING;
        if (status)
            return status;
        hbm_post(o, NULL, 0, 0);
        o->stage = REDUCING;
    }
    for (; o->piece < o->pieces; o->piece++) {
        const post *p;
        status = c->rank && !o->piece ? hbm_find_post(o, c->rank - 1, 0, &p) : HBM_OK;
        if (status)
            return status;
        if (c->rank && !reached(o, c->rank - 1, &c->peers[c->rank - 1].control->ready,
                                at_step(o, o->piece + 1)))
            return HBM_PENDING;
        if (next < c->size && o->piece >= depth(o)
            && !reached(o, next, &c->peers[next].control->done,
                        at_step(o, o->piece - depth(o) + 1)))
            return HBM_PENDING;
        status = reduce_piece(o);
        if (status)
            return status;
    }
    return next < c->size && !reached(o, next, &c->peers[next].control->done,
                                      at_step(o, o->pieces)) ? HBM_PENDING : HBM_OK;
}
