/* Reduction of the same range of several inputs into one or more outputs. */
#ifndef HBMCOMM_REDUCTION_H
#define HBMCOMM_REDUCTION_H

#include "api.h"
#include "kernels/copy.h"

/* `offset` and `bytes` are the range in each array; `how` is IN_ORDER, IN_TURN or STREAMING. */
int hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                uint64_t offset, uint64_t bytes, int how);

#endif
