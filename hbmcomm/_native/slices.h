/* How the ranks share out a vector that they reduce together: evenly, in whole cache lines. */
#ifndef HBMCOMM_SLICES_H
#define HBMCOMM_SLICES_H

#include "parts.h"

typedef struct {
    uint64_t from, to; /* bytes */
} slice;

/* The part of `bytes` that `rank` of `size` has. No entry lies across two slices. */
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

/* Where other ranks' arrays are in a call in which all lie in the arena and all have met. */
int hbm_find_arrays(hbm_operation *o, int rank, uint64_t *send, uint64_t *recv);

#endif
