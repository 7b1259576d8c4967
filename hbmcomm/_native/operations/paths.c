/* Chooses the algorithm of an operation from what all ranks know when they call it. Where that does
   not suffice, agreed.c chooses again later.

   docs/transport.md has these choices in a table. All ranks choose the same: the choice depends on
   the operation, its length, the tuning and the machine alone. A rank posts what its own arrays
   allow as its offer (rendezvous.c). It reads no words of other ranks, so it needs no ordering. */
#include "operations/paths.h"

#include "algorithms/algorithms.h"
#include "cpu/copy.h"
#include "optimizers/update.h"

/* Bytes that an operation accesses, all ranks together. */
static uint64_t footprint(const hbm_operation *o)
{
    uint64_t n = (uint64_t)o->comm->size;
    switch (o->call.operation) {
    case HBM_BCAST:
        return n * o->block;
    case HBM_GATHER:
    case HBM_SCATTER:
    case HBM_ALLREDUCE:
    case HBM_UPDATE:
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

/* Whether each rank reduces whole messages: those of all ranks, or of all below it in the tree. */
static int reduces_whole(const hbm_operation *o)
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
    return c->groups.nodes.count > 1 ? hbm_allgather_agreed : hbm_exchange;
}

static int travels_in_posts(advance path)
{
    return path == hbm_barrier_path || path == hbm_bcast_eager || path == hbm_reduce_eager
           || path == hbm_allreduce_eager || path == hbm_scan_eager || path == hbm_allgather_grid;
}

static advance path_of(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    if (o->call.operation == HBM_UPDATE)
        return hbm_update_path;
    if (o->call.operation == HBM_BARRIER || o->call.operation >= HBM_FOREIGN)
        return hbm_barrier_path;
    if (c->size == 1)
        return hbm_single_rank;
    switch (o->call.operation) {
    case HBM_BCAST:
        return is_eager(o) ? hbm_bcast_eager : hbm_broadcast;
    case HBM_ALLGATHER:
        return path_of_allgather(o);
    case HBM_REDUCE:
        return reduces_whole(o) ? hbm_reduce_eager : hbm_reduce_agreed;
    case HBM_ALLREDUCE:
        return reduces_whole(o) ? hbm_allreduce_eager : hbm_reduce_agreed;
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

advance hbm_path(hbm_operation *o)
{
    o->streaming = !is_eager(o) && footprint(o) > o->comm->tuning.stream_bytes;
    o->in_turn = !is_eager(o) && footprint(o) <= TURN_MOST && !o->streaming;
    advance path = path_of(o);
    o->reads_memory = !travels_in_posts(path); /* exchange.c sets it again */
    return path;
}
