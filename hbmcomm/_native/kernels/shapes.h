/* What each operation moves. */
#ifndef HBMCOMM_SHAPES_H
#define HBMCOMM_SHAPES_H

#include "api.h"

extern const hbm_shape hbm_shapes[HBM_FOREIGN + 1]; /* the last one is that of all foreign calls */

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
