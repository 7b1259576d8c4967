/* How ranks divide a vector that they reduce together, and where the arrays of the others are. */
#ifndef HBMCOMM_SLICES_H
#define HBMCOMM_SLICES_H

#include "kernels/dtype.h"
#include "comm/posts.h"

typedef struct {
    uint64_t from, to; /* bytes */
} slice;

/* The slice of `rank` of `size`: even shares, in whole cache lines. No entry crosses two slices. */
static inline slice slice_of(const hbm_operation *o, uint64_t bytes, int rank, int size)
{
    uint64_t entry = entry_bytes(&o->call);
    uint64_t grain = LINE % entry ? (LINE + entry - 1) / entry * entry : LINE;
    uint64_t grains = (bytes + grain - 1) / grain, n = (uint64_t)size, r = (uint64_t)rank;
    slice s = {grains * r / n * grain, grains * (r + 1) / n * grain};
    s.from = s.from < bytes ? s.from : bytes;
    s.to = s.to < bytes ? s.to : bytes;
    return s;
}

/* Whether a rank receives the result of a reduce or an allreduce. */
static inline int has_output(const hbm_operation *o, int rank)
{
    return o->call.operation != HBM_REDUCE || rank == o->call.root;
}

/* The offsets of another rank's arrays, in a call in which all arrays are in the arena and all
   ranks have passed hbm_enter(). */
static inline int find_arrays(hbm_operation *o, int rank, uint64_t *send, uint64_t *recv)
{
    const post *p;
    *send = o->send_at;
    *recv = o->recv_at;
    if (o->flags & SAME_OFFSETS || rank == o->comm->rank)
        return HBM_OK;
    int status = hbm_find_post(o, rank, 0, &p);
    if (status)
        return status;
    const volatile post *posted = p;
    *send = posted->send;
    *recv = posted->recv;
    return HBM_OK;
}

#endif
