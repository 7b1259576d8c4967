/* Reduce and allreduce where all arrays are in the arena of one node: each rank reduces its slice
   of all inputs straight into all outputs, in the order of the ranks.

   Ordering: the ranks have passed hbm_enter(), so that all inputs are visible. hbm_sync() at the
   end makes all slices visible, and keeps every rank until nobody accesses its arrays any more. */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "rendezvous/rendezvous.h"
#include "rendezvous/slices.h"

static int reduce_slice(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int outs = 0;
    slice s = slice_of(o, o->block, c->rank, c->size);
    for (int r = 0; r < c->size; r++) {
        uint64_t send, recv;
        int status = find_arrays(o, r, &send, &recv);
        if (status)
            return status;
        c->in[r] = hbm_array(o, r, send, 0, o->block);
        if (has_output(o, r))
            c->out[outs++] = hbm_array(o, r, recv, 0, o->block);
        if (!c->in[r] || (outs && !c->out[outs - 1]))
            return c->failure.status;
        count_from(c, r, s.to - s.from);
        if (has_output(o, r))
            count_to(c, r, s.to - s.from);
    }
    int status = reduce_into(o, c->size, c->out, outs, s.from, s.to - s.from,
                             how_to_reduce(o, s.to - s.from));
    if (o->streaming)
        hbm_stream_end();
    return status;
}

int hbm_reduce_flat(hbm_operation *o)
{
    if (!o->stage) {
        int status = reduce_slice(o);
        if (status)
            return status;
        o->stage = 1;
    }
    return hbm_sync(o, 1);
}
