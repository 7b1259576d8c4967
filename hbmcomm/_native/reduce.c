/* Reduce and allreduce of messages that all ranks share out: they meet, agree on a way, and, where all
   arrays are in the arena of one node, each reduces its slice of all inputs straight into all
   outputs, in the order of the ranks. */
#include "slices.h"
#include "paths.h"

enum { BEGINNING, MEETING };

static int has_output(const hbm_operation *o, int rank)
{
    return o->call.operation != HBM_REDUCE || rank == o->call.root;
}

int hbm_reduction(hbm_operation *o)
{
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin(o, READ_BY_ALL);
        if (status)
            return status;
        o->flags = SAME_PLACES | (o->sends_from_arena ? IN_ARENA : 0)
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

int hbm_find_arrays(hbm_operation *o, int rank, uint64_t *send, uint64_t *recv)
{
    const post *p;
    *send = o->send_at;
    *recv = o->recv_at;
    if (o->flags & SAME_PLACES || rank == o->comm->rank)
        return HBM_OK;
    int status = hbm_met(o, rank, 0, &p);
    if (status)
        return status;
    const volatile post *posted = p;
    *send = posted->send;
    *recv = posted->recv;
    return HBM_OK;
}

static int fold_slice(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int outs = 0;
    slice s = slice_of(o, o->block, c->rank, c->size);
    for (int r = 0; r < c->size; r++) {
        uint64_t send, recv;
        int status = hbm_find_arrays(o, r, &send, &recv);
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
    int status = fold_into(o, c->size, c->out, outs, s.from, s.to - s.from,
                           how_to_fold(o, s.to - s.from));
    if (o->streaming)
        hbm_stream_end();
    return status;
}

int hbm_reduce_flat(hbm_operation *o)
{
    if (!o->stage) {
        int status = fold_slice(o);
        if (status)
            return status;
        o->stage = 1;
    }
    return hbm_sync(o, 1);
}
