/* Messages that fit a slot: they travel with the call itself, and no one waits for a reader.

   The longer of them are not copied where they lie in the arena: the others read them there, and
   their owner waits until they have. Where all do, the work is shared out as for long messages.

   Where every rank has a CPU of its own, all meet in every call, so that calls which differ are
   told at once. Where they share CPUs a rank waits for those alone whose data it needs; a
   difference is then told at the next call in which ranks meet.

   Every rank reads by itself what it needs, from other NUMA nodes too: what ten ranks of a node
   need from a slot elsewhere crosses ten times. Meeting once more on the node would cost more. */
#include "core.h"

/* Whether what a rank gives, or in a reduction what it takes, has room in `room` bytes. */
int hbm_fits(const hbm_comm *c, const hbm_call *call, uint64_t room)
{
    uint64_t block = bytes_of(call);
    switch (call->operation) {
    case HBM_BARRIER:
        return 1;
    case HBM_SCATTER:
    case HBM_ALLTOALL:
    case HBM_REDUCE_SCATTER_BLOCK:
        return block <= room / (uint64_t)c->size;
    case HBM_REDUCE:
    case HBM_ALLREDUCE: /* each rank reduces all of it: what is longer is better shared out */
        return block <= room && block * (uint64_t)c->size <= room;
    default:
        return block <= room;
    }
}

static int gives(const hbm_call *call, int rank)
{
    switch (call->operation) {
    case HBM_BARRIER:
        return 0;
    case HBM_BCAST:
    case HBM_SCATTER:
        return rank == call->root;
    case HBM_GATHER:
    case HBM_REDUCE:
        return rank != call->root;
    default:
        return 1;
    }
}

static int takes(const hbm_call *call, int rank)
{
    switch (call->operation) {
    case HBM_BCAST:
    case HBM_SCATTER:
        return rank != call->root;
    case HBM_GATHER:
    case HBM_REDUCE:
        return rank == call->root;
    default:
        return 1;
    }
}

static int meet(hbm_comm *c, const hbm_call *call)
{
    const slot *met;
    if (!c->oversubscribed)
        return hbm_meet_all(c);
    if (!takes(call, c->rank))
        return hbm_glance(c);
    if (call->operation == HBM_BCAST || call->operation == HBM_SCATTER)
        return hbm_meet(c, call->root, &met);
    return hbm_meet_all(c);
}

/* What a rank gave, in the slot or (`lent`) in the arena; `offset` is that of the block meant. */
static const char *given_by(const hbm_comm *c, const hbm_call *call, int rank, int lent,
                            uint64_t offset)
{
    const slot *s = slot_of(c->ranks[rank], c->sequence);
    if (rank == c->rank)
        return (const char *)call->send + offset;
    return (lent && s->send ? (const char *)c->segments[rank] + s->send : (const char *)s->data)
           + offset;
}

static void take(hbm_comm *c, const hbm_call *call, int lent)
{
    uint64_t block = bytes_of(call), mine = block * (uint64_t)c->rank;
    char *recv = (char *)call->recv;
    int r, n = c->size;
    switch (call->operation) {
    case HBM_BCAST:
        hbm_copy(recv, given_by(c, call, call->root, lent, 0), block);
        break;
    case HBM_SCATTER:
        hbm_copy(recv, given_by(c, call, call->root, lent, mine), block);
        break;
    case HBM_GATHER:
    case HBM_ALLGATHER:
        for (r = 0; r < n; r++)
            hbm_copy(recv + block * (uint64_t)r, given_by(c, call, r, lent, 0), block);
        break;
    case HBM_ALLTOALL:
        for (r = 0; r < n; r++)
            hbm_copy(recv + block * (uint64_t)r, given_by(c, call, r, lent, mine), block);
        break;
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE:
    case HBM_ALLREDUCE:
        for (r = 0; r < n; r++)
            c->in[r] = given_by(c, call, r, lent,
                                call->operation == HBM_REDUCE_SCATTER_BLOCK ? mine : 0);
        c->out[0] = recv;
        hbm_combine(call, c->in, n, c->out, 1, 0, call->count, 0);
        break;
    default:
        break;
    }
}

static void count_links(hbm_comm *c, const hbm_call *call)
{
    int from_root = call->operation == HBM_BCAST || call->operation == HBM_SCATTER;
    int givers = from_root ? c->nodes[call->root] != c->nodes[c->rank] : c->elsewhere;
    c->link_bytes += bytes_of(call) * (uint64_t)givers;
}

/* How many of those who give lent what lies in the arena, and whether all could write to all. */
static int lenders(const hbm_comm *c, const hbm_call *call, int *all)
{
    int n = 0;
    *all = 1;
    for (int r = 0; r < c->size; r++) {
        const slot *s = slot_of(c->ranks[r], c->sequence);
        n += gives(call, r) && s->send;
        *all &= (!gives(call, r) || s->send) && (!takes(call, r) || s->recv);
        *all &= !(call->operation == HBM_REDUCE && !s->send);
    }
    return n;
}

/* Those who take say that they have; those who lent wait for it. */
static int return_loans(hbm_comm *c, const hbm_call *call)
{
    uint64_t target = c->steps + 1;
    int status = HBM_OK, waits = gives(call, c->rank) && slot_of(c->own, c->sequence)->send;
    hbm_step(c);
    for (int r = 0; r < c->size && waits && !status; r++)
        if (r != c->rank && takes(call, r))
            status = hbm_await_step(c, r, target);
    return status;
}

int hbm_eager(hbm_comm *c, const hbm_call *call)
{
    uint64_t block = bytes_of(call), bytes = gives(call, c->rank) ? block : 0;
    int lend = !c->oversubscribed && !hbm_fits(c, call, EAGER_BYTES), all = 0, lent = 0;
    if (call->operation == HBM_SCATTER || call->operation == HBM_ALLTOALL
        || call->operation == HBM_REDUCE_SCATTER_BLOCK)
        bytes *= (uint64_t)c->size;
    hbm_call told = *call;
    if (call->operation == HBM_ALLREDUCE && call->send == call->recv)
        told.send = 0; /* not lent: it is overwritten while others may read it */
    if (lend && hbm_is_shared(c, told.send))
        bytes = 0;
    int status = hbm_post(c, &told, (const void *)call->send, bytes);
    if (!status)
        status = meet(c, call);
    if (status || !block || call->operation == HBM_BARRIER)
        return status;
    if (lend)
        lent = lenders(c, call, &all);
    if (all)
        return call->operation >= HBM_REDUCE ? hbm_reduce(c, call) : hbm_move(c, call);
    if (takes(call, c->rank)) {
        take(c, call, lent);
        if (c->elsewhere)
            count_links(c, call);
    } else if (call->operation == HBM_SCATTER)
        hbm_copy((void *)call->recv, (const char *)call->send + block * (uint64_t)c->rank, block);
    return lent ? return_loans(c, call) : HBM_OK;
}
