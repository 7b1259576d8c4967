/* Broadcast, gather, scatter, allgather, alltoall of messages of any length, all ranks having met.

   Where the ranks can reach each other's arrays (they lie in the arena) each byte is copied once,
   from input to output, and the copying is shared out evenly: in one step, after which those whose
   memory others used have waited for them. */
#include "moves.h"

static int all_outputs_shared(const move *m)
{
    for (int r = 0; r < m->c->size; r++)
        if (!word_of(m, r)->recv)
            return 0;
    return 1;
}

static int wait_all(const move *m, uint64_t steps)
{
    int status = HBM_OK;
    for (int r = 0; r < m->c->size && !status; r++)
        status = wait_step(m, r, steps);
    return status;
}

/* Each leaf copies most of its output, the root the rest of all outputs: the same for everyone. */
static int broadcast(const move *m)
{
    hbm_comm *c = m->c;
    int root = m->call->root, shared = all_outputs_shared(m);
    char *from = input_of(m, root);
    uint64_t pulled = shared ? m->block - m->block / (uint64_t)c->size / LINE * LINE : m->block;
    if (c->rank != root) {
        carry(m, (void *)m->call->recv, c->rank, from, root, pulled);
        step_to(m, 1);
        return pulled < m->block ? wait_step(m, root, 1) : HBM_OK;
    }
    for (int r = 0; r < c->size && pulled < m->block; r++)
        if (r != root)
            carry(m, output_of(m, r) + pulled, r, from + pulled, root, m->block - pulled);
    step_to(m, 1);
    return wait_all(m, 1);
}

/* Every rank puts its own block where it belongs. */
static int push_to_root(const move *m)
{
    hbm_comm *c = m->c;
    int root = m->call->root;
    carry(m, output_of(m, root) + (uint64_t)c->rank * m->block, root, (void *)m->call->send,
          c->rank, m->block);
    step_to(m, 1);
    return c->rank == root ? wait_all(m, 1) : HBM_OK;
}

/* Every rank that takes fetches its blocks from those that give. */
static int pull(const move *m)
{
    hbm_comm *c = m->c;
    for (int i = 0; i < c->size && takes(m, c->rank); i++) {
        int r = next_of(m, i);
        if (!gives(m, r))
            continue;
        char *to = (char *)m->call->recv + (m->root_gives ? 0 : (uint64_t)r * m->block);
        const char *from = input_of(m, r) + (m->slices > 1 ? (uint64_t)c->rank * m->block : 0);
        carry(m, to, c->rank, from, r, m->block);
    }
    step_to(m, 1);
    for (int r = 0; r < c->size && gives(m, c->rank); r++) {
        int status = takes(m, r) ? wait_step(m, r, 1) : HBM_OK;
        if (status)
            return status;
    }
    return HBM_OK;
}

static uint64_t footprint(const move *m)
{
    uint64_t n = (uint64_t)m->c->size;
    switch (m->call->operation) {
    case HBM_BCAST:
        return n * m->block;
    case HBM_GATHER:
    case HBM_SCATTER:
        return 2 * n * m->block;
    case HBM_ALLGATHER:
        return (n + n * n) * m->block;
    default:
        return 2 * n * n * m->block;
    }
}

static int all_inputs_shared(const move *m)
{
    for (int r = 0; r < m->c->size; r++)
        if (gives(m, r) && !word_of(m, r)->send && m->c->size > 1)
            return 0;
    return 1;
}

static int one_node(const move *m)
{
    for (int r = 1; r < m->c->size; r++)
        if (!same_node(m, 0, r))
            return 0;
    return 1;
}

int hbm_move(hbm_comm *c, const hbm_call *call)
{
    int each = call->operation == HBM_SCATTER || call->operation == HBM_ALLTOALL;
    move m = {.c = c, .call = call, .block = bytes_of(call), .base = c->steps,
              .slices = each ? c->size : 1,
              .root_gives = call->operation == HBM_BCAST || call->operation == HBM_SCATTER,
              .root_takes = call->operation == HBM_GATHER};
    m.streaming = footprint(&m) > c->cache_bytes;
    if (m.root_takes && word_of(&m, call->root)->recv)
        return push_to_root(&m);
    if (!all_inputs_shared(&m))
        return hbm_stage(&m);
    int by_nodes = !one_node(&m) && all_outputs_shared(&m);
    if (call->operation == HBM_BCAST)
        return by_nodes ? hbm_broadcast_by_nodes(&m) : broadcast(&m);
    if (call->operation == HBM_ALLGATHER && by_nodes)
        return hbm_allgather_by_nodes(&m);
    return pull(&m);
}
