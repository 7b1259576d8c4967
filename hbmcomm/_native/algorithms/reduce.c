/* Reduce and allreduce of messages that all ranks work on: they post their arrays, agree on an
   algorithm and run it.

   Ordering: hbm_enter() is a barrier, so that all inputs are visible after it. All ranks have
   completed the call before, so the staging buffers are free.

   Model: algorithms/staging.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "algorithms/pieces.h"
#include "algorithms/reduce.h"
#include "algorithms/rendezvous.h"
#include "algorithms/slices.h"
#include "comm/posts.h"

enum { BEGINNING, MEETING };

int hbm_reduce_agreed(hbm_operation *o)
{
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, READ_BY_ALL);
        if (status)
            return status;
        o->flags = SAME_OFFSETS | (o->sends_from_arena ? IN_ARENA : 0)
                   | (o->receives_in_arena || !has_output(o, o->comm->rank) ? RECV_IN_ARENA : 0);
        hbm_post(o, NULL, 0, o->flags);
        o->stage = MEETING;
        /* fall through */
    default:
        status = hbm_enter(o);
        if (status)
            return status;
        o->stage = 0;
        o->advance = hbm_agreed_path(o);
        return o->advance(o);
    }
}

/* Chooses algorithms that depend on the posts of all ranks. paths.c makes the choices before that.

   All ranks choose the same: o->flags are the flags that all ranks posted. It reads no words of
   other ranks, so it needs no ordering. */
static int goes_by_nodes(const hbm_operation *o)
{
    return o->comm->groups.nodes.count > 1
           && o->block * (uint64_t)o->comm->size >= o->comm->tuning.by_node_bytes
           && hbm_nodes_have_room(o);
}

int hbm_agrees(const hbm_operation *o)
{
    return goes_by_nodes(o) && o->call.operation == HBM_REDUCE_SCATTER_BLOCK;
}

/* With more ranks, and for long arrays that all receive, it is faster that each reduces a slice. */
static int is_pair(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    return c->size == 2 && !c->oversubscribed && o->call.reduction != HBM_USER
           && (o->call.operation == HBM_REDUCE || o->block <= c->tuning.pair_bytes)
           && hbm_pair_has_room(o);
}

advance hbm_agreed_path(const hbm_operation *o)
{
    if (!(o->flags & IN_ARENA) || !(o->flags & RECV_IN_ARENA))
        return is_pair(o) ? hbm_reduce_pair : hbm_reduce_staged;
    return goes_by_nodes(o) ? hbm_reduce_by_nodes : hbm_reduce_flat;
}

/* Reduce and allreduce where all arrays are in the arena of one node: each rank reduces its slice
   of all inputs straight into all outputs, in the order of the ranks.

   Ordering: the ranks have passed hbm_enter(), so that all inputs are visible. hbm_sync() at the
   end makes all slices visible, and keeps every rank until nobody accesses its arrays any more. */
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
