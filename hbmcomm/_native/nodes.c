/* Broadcast and allgather over several NUMA nodes: each byte crosses to every other node once.

   All inputs and outputs are shared: what one rank of a node has fetched lies in its output, from
   where its mates copy it. In a broadcast the first rank of a node leads and fetches all. Messages
   in slots, and staged ones, do not come here: they cross once for each rank that reads them. */
#include "moves.h"

#define PIECE (256 * 1024)

static int leader_of(const move *m, int rank)
{
    int leader = 0;
    while (!same_node(m, leader, rank))
        leader++;
    return leader;
}

/* Whom a rank copies from: the root on its node, its leader elsewhere, the root for a leader. */
static int source_of(const move *m, int rank)
{
    int leader = leader_of(m, rank);
    return same_node(m, rank, m->call->root) || rank == leader ? m->call->root : leader;
}

/* A step per piece, so that mates copy while their leader fetches the next. */
int hbm_broadcast_by_nodes(const move *m)
{
    hbm_comm *c = m->c;
    int root = m->call->root, source = source_of(m, c->rank), status = HBM_OK;
    uint64_t pieces = (m->block + PIECE - 1) / PIECE;
    for (uint64_t k = 0; k < pieces && c->rank != root; k++) {
        uint64_t at = k * PIECE, bytes = m->block - at < PIECE ? m->block - at : PIECE;
        if (source != root)
            status = wait_step(m, source, k + 1);
        if (status)
            return status;
        carry(m, (char *)m->call->recv + at, c->rank,
              (source == root ? input_of(m, root) : output_of(m, source)) + at, source, bytes);
        step_to(m, k + 1);
    }
    if (c->rank == root)
        step_to(m, pieces);
    for (int r = 0; r < c->size && !status; r++)
        if (r != root && source_of(m, r) == c->rank)
            status = wait_step(m, r, pieces);
    return status;
}

static int mates_of(const move *m, int rank)
{
    int mates = 0;
    for (int r = 0; r < m->c->size; r++)
        mates += same_node(m, r, rank);
    return mates;
}

/* Which of the ranks on this node fetches the block of a rank elsewhere: they take turns. */
static int fetcher_of(const move *m, int rank)
{
    int turn = rank % mates_of(m, m->c->rank), r = 0;
    for (;; r++)
        if (same_node(m, r, m->c->rank) && turn-- == 0)
            return r;
}

static void copy_block(const move *m, int block, const char *from, int from_rank)
{
    carry(m, (char *)m->call->recv + (uint64_t)block * m->block, m->c->rank, from, from_rank,
          m->block);
}

/* First the blocks of this node and a share of the others', then the rest from this node's ranks. */
int hbm_allgather_by_nodes(const move *m)
{
    hbm_comm *c = m->c;
    int status = HBM_OK;
    for (int i = 0; i < c->size; i++) {
        int r = next_of(m, i);
        if (same_node(m, r, c->rank) || fetcher_of(m, r) == c->rank)
            copy_block(m, r, input_of(m, r), r);
    }
    step_to(m, 1);
    for (int i = 0; i < c->size; i++) {
        int r = next_of(m, i), fetcher = same_node(m, r, c->rank) ? c->rank : fetcher_of(m, r);
        if (fetcher == c->rank)
            continue;
        status = wait_step(m, fetcher, 1);
        if (status)
            return status;
        copy_block(m, r, output_of(m, fetcher) + (uint64_t)r * m->block, fetcher);
    }
    step_to(m, 2);
    for (int r = 0; r < c->size && !status; r++)
        status = wait_step(m, r, 2);
    return status;
}
