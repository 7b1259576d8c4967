/* Chooses algorithms that depend on the posts of all ranks. paths.c makes the choices before that.

   All ranks choose the same: o->flags are the flags that all ranks posted. It reads no words of
   other ranks, so it needs no ordering. */
#include "reduce/agreed.h"

#include "algorithms/algorithms.h"

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
