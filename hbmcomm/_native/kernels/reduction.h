/* Reduction of the same range of several inputs into one or more outputs. */
#ifndef HBMCOMM_REDUCTION_H
#define HBMCOMM_REDUCTION_H

#include "communicator/comm.h"
#include "cpu/copy.h"

/* `offset` and `bytes` are the range in each array; `how` is IN_ORDER, IN_TURN or STREAMING. */
int hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                uint64_t offset, uint64_t bytes, int how);

/* Reduces a range of the inputs in comm->in into the outputs. */
static inline int reduce_into(hbm_operation *o, int ins, void *const *out, int outs,
                              uint64_t offset, uint64_t bytes, int how)
{
    count_reduced(o->comm, bytes * (uint64_t)ins);
    return hbm_combine(&o->call, o->comm->in, ins, out, outs, offset, bytes, how);
}

#endif
