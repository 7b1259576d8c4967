/* What the files on moves share: one call as a rank sees it, and how ranks wait and copy in it.

   Every rank takes the same number of steps in an operation, whatever its part in it. */
#ifndef HBMCOMM_MOVES_H
#define HBMCOMM_MOVES_H

#include "core.h"

typedef struct {
    hbm_comm *c;
    const hbm_call *call;
    uint64_t block, base; /* bytes of one rank's block; steps taken before this operation */
    int streaming;
    int slices;                 /* blocks that one who gives has: one, or one for each rank */
    int root_gives, root_takes; /* only the root does; else all do */
} move;

static inline const slot *word_of(const move *m, int rank)
{
    return slot_of(m->c->ranks[rank], m->c->sequence);
}

/* Where this rank finds another's input or output: only asked where the rank has shared it. */
static inline char *input_of(const move *m, int rank)
{
    return rank == m->c->rank ? (char *)m->call->send
                              : (char *)m->c->segments[rank] + word_of(m, rank)->send;
}

static inline char *output_of(const move *m, int rank)
{
    return rank == m->c->rank ? (char *)m->call->recv
                              : (char *)m->c->segments[rank] + word_of(m, rank)->recv;
}

static inline int gives(const move *m, int rank) { return !m->root_gives || rank == m->call->root; }

static inline int takes(const move *m, int rank) { return !m->root_takes || rank == m->call->root; }

static inline int same_node(const move *m, int a, int b)
{
    return m->c->nodes[a] == m->c->nodes[b];
}

/* Copies between two ranks' memory; one of them, or a mate on the node of one, is this rank. */
static inline void carry(const move *m, void *to, int to_rank, const void *from, int from_rank,
                         uint64_t bytes)
{
    (m->streaming ? hbm_stream : hbm_copy)(to, from, bytes);
    if (!same_node(m, to_rank, from_rank))
        m->c->link_bytes += bytes;
}

static inline int wait_step(const move *m, int rank, uint64_t steps)
{
    return rank == m->c->rank ? HBM_OK : hbm_await_step(m->c, rank, m->base + steps);
}

/* Be at a step of this operation. */
static inline void step_to(const move *m, uint64_t steps)
{
    if (m->streaming)
        hbm_stream_end();
    m->c->steps = m->base + steps - 1;
    hbm_step(m->c);
}

/* The ranks after this one first, so that not all read from the same. */
static inline int next_of(const move *m, int i) { return (m->c->rank + i) % m->c->size; }

/* staged.c, nodes.c */
int hbm_stage(const move *m);
int hbm_broadcast_by_nodes(const move *m);
int hbm_allgather_by_nodes(const move *m);

#endif
