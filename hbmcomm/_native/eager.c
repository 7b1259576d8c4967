/* Messages that fit a slot: they travel with the call itself, and no one waits for a reader.

   Where every rank has a CPU of its own, all meet in every call, so that calls which differ are
   told at once. Where they share CPUs a rank waits for those alone whose data it needs; a
   difference is then told at the next call in which ranks meet. */
#include "core.h"

int hbm_is_eager(const hbm_comm *c, const hbm_call *call)
{
    uint64_t block = bytes_of(call);
    switch (call->operation) {
    case HBM_BARRIER:
        return 1;
    case HBM_SCATTER:
    case HBM_ALLTOALL:
    case HBM_REDUCE_SCATTER_BLOCK:
        return block <= EAGER_BYTES / (uint64_t)c->size;
    default:
        return block <= EAGER_BYTES;
    }
}

static int gives(const hbm_comm *c, const hbm_call *call)
{
    switch (call->operation) {
    case HBM_BARRIER:
        return 0;
    case HBM_BCAST:
    case HBM_SCATTER:
        return c->rank == call->root;
    case HBM_GATHER:
    case HBM_REDUCE:
        return c->rank != call->root;
    default:
        return 1;
    }
}

static int takes(const hbm_comm *c, const hbm_call *call)
{
    switch (call->operation) {
    case HBM_BCAST:
    case HBM_SCATTER:
        return c->rank != call->root;
    case HBM_GATHER:
    case HBM_REDUCE:
        return c->rank == call->root;
    default:
        return 1;
    }
}

static int meet(hbm_comm *c, const hbm_call *call)
{
    const slot *met;
    if (!c->oversubscribed)
        return hbm_meet_all(c);
    if (!takes(c, call))
        return hbm_glance(c);
    if (call->operation == HBM_BCAST || call->operation == HBM_SCATTER)
        return hbm_meet(c, call->root, &met);
    return hbm_meet_all(c);
}

/* What a rank gave, at the block that is meant for this one where it gave one for each. */
static const char *given_by(const hbm_comm *c, const hbm_call *call, int rank, uint64_t offset)
{
    const char *whole = rank == c->rank ? (const char *)call->send
                                        : (const char *)slot_of(c->ranks[rank], c->sequence)->data;
    return whole + offset;
}

static void take(hbm_comm *c, const hbm_call *call)
{
    uint64_t block = bytes_of(call), mine = block * (uint64_t)c->rank;
    char *recv = (char *)call->recv;
    int r, n = c->size;
    switch (call->operation) {
    case HBM_BCAST:
        hbm_copy(recv, given_by(c, call, call->root, 0), block);
        break;
    case HBM_SCATTER:
        hbm_copy(recv, given_by(c, call, call->root, mine), block);
        break;
    case HBM_GATHER:
    case HBM_ALLGATHER:
        for (r = 0; r < n; r++)
            hbm_copy(recv + block * (uint64_t)r, given_by(c, call, r, 0), block);
        break;
    case HBM_ALLTOALL:
        for (r = 0; r < n; r++)
            hbm_copy(recv + block * (uint64_t)r, given_by(c, call, r, mine), block);
        break;
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE:
    case HBM_ALLREDUCE:
        for (r = 0; r < n; r++)
            c->in[r] = given_by(c, call, r,
                                call->operation == HBM_REDUCE_SCATTER_BLOCK ? mine : 0);
        c->out[0] = recv;
        hbm_combine(call, c->in, n, c->out, 1, 0, call->count, 0);
        break;
    default:
        break;
    }
}

int hbm_eager(hbm_comm *c, const hbm_call *call)
{
    uint64_t block = bytes_of(call), bytes = gives(c, call) ? block : 0;
    if (call->operation == HBM_SCATTER || call->operation == HBM_ALLTOALL
        || call->operation == HBM_REDUCE_SCATTER_BLOCK)
        bytes *= (uint64_t)c->size;
    int status = hbm_post(c, call, (const void *)call->send, bytes);
    if (!status)
        status = meet(c, call);
    if (!status && block && call->operation != HBM_BARRIER) {
        if (takes(c, call))
            take(c, call);
        else if (call->operation == HBM_SCATTER)
            hbm_copy((void *)call->recv,
                     (const char *)call->send + block * (uint64_t)c->rank, block);
    }
    return status;
}
