/* The one place that decides how an operation is done: by what all ranks know when they call it, and
   then, where it takes more, by what they agreed on when they met.

   docs/transport.md has the same as a table. Ranks decide alike: only the operation, its length, the
   tuning and the machine count here, and what was agreed. What a rank's own arrays allow it says in
   its offer (offers.c). */
#include "paths.h"

/* Bytes that an operation touches, in all ranks together. */
static uint64_t footprint(const hbm_operation *o)
{
    uint64_t n = (uint64_t)o->comm->size;
    switch (o->call.operation) {
    case HBM_BCAST:
        return n * o->block;
    case HBM_GATHER:
    case HBM_SCATTER:
    case HBM_ALLREDUCE:
        return 2 * n * o->block;
    case HBM_REDUCE:
        return (n + 1) * o->block;
    case HBM_ALLTOALL:
        return 2 * n * n * o->block;
    default:
        return (n + 1) * n * o->block;
    }
}

static int is_eager(const hbm_operation *o) { return o->block <= o->comm->tuning.eager_bytes; }

/* Whether each rank folds all of it, or all that comes from below it in the tree. */
static int folds_whole(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    return o->block * (uint64_t)c->size <= c->tuning.fold_bytes
           && hbm_eager_room(c, o->block) <= SLOT_BYTES;
}

static advance path_of_allgather(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    if (is_eager(o))
        return c->groups.grid.count > 1 && c->size > 2
                       && hbm_grid_room(c, o->block) <= SLOT_BYTES
                   ? hbm_allgather_grid : hbm_exchange;
    return c->groups.nodes.count > 1 ? hbm_allgather_met : hbm_exchange;
}

advance hbm_path(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    o->streaming = !is_eager(o) && footprint(o) > c->tuning.stream_bytes;
    o->in_turn = !is_eager(o) && footprint(o) <= TURN_MOST && !o->streaming;
    if (o->call.operation == HBM_BARRIER || o->call.operation >= HBM_FOREIGN)
        return hbm_barrier_path;
    if (c->size == 1)
        return hbm_alone;
    switch (o->call.operation) {
    case HBM_BCAST:
        return is_eager(o) ? hbm_bcast_eager : hbm_broadcast;
    case HBM_ALLGATHER:
        return path_of_allgather(o);
    case HBM_REDUCE:
        return folds_whole(o) ? hbm_reduce_eager : hbm_reduction;
    case HBM_ALLREDUCE:
        return folds_whole(o) ? hbm_allreduce_eager : hbm_reduction;
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE_SCATTER:
        return hbm_reduce_scatter;
    case HBM_SCAN:
    case HBM_EXSCAN:
        return o->block <= c->tuning.short_bytes ? hbm_scan_eager : hbm_scan;
    default:
        return hbm_exchange;
    }
}

/* Whether an operation that is complete has read more of other ranks than their slots. */
int hbm_reads_memory(const hbm_operation *o)
{
    if (o->advance == hbm_exchange)
        return (o->seen & (IN_ARENA | IN_PRIVATE | IN_STAGING)) != 0;
    return o->advance != hbm_barrier_path && o->advance != hbm_bcast_eager
           && o->advance != hbm_reduce_eager && o->advance != hbm_allreduce_eager
           && o->advance != hbm_scan_eager && o->advance != hbm_allgather_grid;
}

static int goes_by_nodes(const hbm_operation *o)
{
    return o->comm->groups.nodes.count > 1
           && o->block * (uint64_t)o->comm->size >= o->comm->tuning.by_node_bytes;
}

/* Whether ranks meet before a reduce-scatter, to find out if they can go by nodes. */
int hbm_agrees(const hbm_operation *o)
{
    return goes_by_nodes(o) && o->call.operation == HBM_REDUCE_SCATTER_BLOCK;
}

/* With more ranks, and of long arrays that all receive, it is quicker that each folds a slice. */
static int is_pair(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    return c->size == 2 && !c->oversubscribed && o->call.reduction != HBM_USER
           && (o->call.operation == HBM_REDUCE || o->block <= c->tuning.pair_bytes);
}

advance hbm_agreed_path(hbm_operation *o)
{
    if (!(o->flags & IN_ARENA) || !(o->flags & RECV_IN_ARENA))
        return is_pair(o) ? hbm_reduce_pair : hbm_reduce_staged;
    return goes_by_nodes(o) ? hbm_reduce_by_nodes : hbm_reduce_flat;
}
