/* The operations of several hosts, by their numbers. */
#ifndef HBMCOMM_SPREAD_H
#define HBMCOMM_SPREAD_H

#include "hosts/state.h"

extern const hbm_spread hbm_spread_moves[HBM_REDUCE];
extern const hbm_spread hbm_spread_reductions[HBM_FOREIGN];

/* The entries of the current slice, and this leader's part of them. */
static inline hbm_range slice_of(const hbm_hosts *h)
{
    return hbm_part_of((hbm_range){0, h->count}, h->slices, h->slice);
}

static inline hbm_range lane_of(const hbm_hosts *h, int lane)
{
    return hbm_part_of(slice_of(h), (uint64_t)h->leaders, (uint64_t)lane);
}

static inline int first_leader(const hbm_hosts *h)
{
    return h->index_of[hbm_leader_of(h, h->host, 0, h->root)];
}

/* Moves bytes among the ranks of this host; `bytes` are of this rank's own block. */
static inline int move_inside(hbm_hosts *h, int operation, uint64_t bytes, uintptr_t send,
                              uintptr_t recv, int root, const hbm_part *sent,
                              const hbm_part *received)
{
    hbm_call call = {.operation = (uint8_t)operation, .dtype = HBM_UINT8, .root = root,
                     .count = bytes, .send = send, .recv = recv, .send_parts = sent,
                     .recv_parts = received};
    return hbm_start_inside(h, &call);
}

#endif
