/* What each operation moves: the one place that knows. It is constant, so it needs no ordering. */
#include "kernels/shapes.h"

const hbm_shape hbm_shapes[HBM_FOREIGN + 1] = {
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
    [HBM_FOREIGN] = {0},
};

hbm_shape hbm_shape_of(int operation) { return *shape_of(operation); }
