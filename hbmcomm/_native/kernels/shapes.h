/* What each operation moves: the one place that knows. */
#ifndef HBMCOMM_SHAPES_H
#define HBMCOMM_SHAPES_H

#include "api.h"

static const hbm_shape hbm_shapes[HBM_FOREIGN + 1] = {
    [HBM_BARRIER] = {0},
    [HBM_BCAST] = {.from_root = 1},
    [HBM_GATHER] = {.to_root = 1, .receives_each = 1},
    [HBM_SCATTER] = {.from_root = 1, .sends_each = 1},
    [HBM_ALLGATHER] = {.receives_each = 1},
    [HBM_ALLTOALL] = {.sends_each = 1, .receives_each = 1},
    [HBM_GATHERV] = {.to_root = 1, .receives_each = 1, .lengths = HBM_OWN},
    [HBM_SCATTERV] = {.from_root = 1, .sends_each = 1, .lengths = HBM_OWN},
    [HBM_ALLGATHERV] = {.receives_each = 1, .lengths = HBM_LISTED},
    [HBM_ALLTOALLV] = {.sends_each = 1, .receives_each = 1, .lengths = HBM_OWN},
    [HBM_REDUCE] = {.to_root = 1, .reduces = 1},
    [HBM_ALLREDUCE] = {.reduces = 1},
    [HBM_REDUCE_SCATTER_BLOCK] = {.sends_each = 1, .reduces = 1},
    [HBM_REDUCE_SCATTER] = {.sends_each = 1, .lengths = HBM_LISTED, .reduces = 1},
    [HBM_SCAN] = {.reduces = 1},
    [HBM_EXSCAN] = {.reduces = 1},
    [HBM_FOREIGN] = {0}, /* and all above */
};

/* The number may be any that another rank wrote. */
static inline const hbm_shape *shape_of(int operation)
{
    return &hbm_shapes[(unsigned)operation < HBM_FOREIGN ? operation : HBM_FOREIGN];
}

static inline int has_root(int operation)
{
    return shape_of(operation)->from_root || shape_of(operation)->to_root;
}

/* Whether every rank has one block alone, and all blocks are as long. */
static inline int has_one_block(int operation)
{
    return !shape_of(operation)->sends_each && !shape_of(operation)->receives_each;
}

#endif
