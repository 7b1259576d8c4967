/* Which blocks each rank sends to which, and where they are in the arrays of this rank. */
#ifndef HBMCOMM_BLOCKS_H
#define HBMCOMM_BLOCKS_H

#include "comm/comm.h"

static inline int is_from_root(const hbm_operation *o)
{
    int operation = o->call.operation;
    return operation == HBM_SCATTER || operation == HBM_SCATTERV || operation == HBM_BCAST;
}

static inline int is_to_root(const hbm_operation *o)
{
    return o->call.operation == HBM_GATHER || o->call.operation == HBM_GATHERV;
}

/* Whether a sender has a different block for each receiver. */
static inline int sends_to_each(const hbm_call *call)
{
    switch (call->operation) {
    case HBM_SCATTER:
    case HBM_SCATTERV:
    case HBM_ALLTOALL:
    case HBM_ALLTOALLV:
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE_SCATTER:
        return 1;
    default:
        return 0;
    }
}

static inline int is_sender(const hbm_operation *o, int rank)
{
    return is_from_root(o) ? rank == o->call.root : !is_to_root(o) || rank != o->call.root;
}

static inline int is_receiver(const hbm_operation *o, int rank)
{
    return is_to_root(o) ? rank == o->call.root : !is_from_root(o) || rank != o->call.root;
}

/* The part of this rank's send buffer for a receiver. */
static inline hbm_part part_for(const hbm_operation *o, int receiver)
{
    if (o->call.send_parts)
        return o->call.send_parts[receiver];
    return (hbm_part){sends_to_each(&o->call) ? (uint64_t)receiver * o->block : 0, o->block};
}

/* The part of this rank's receive buffer for a sender's block. */
static inline hbm_part part_from(const hbm_operation *o, int sender)
{
    if (o->call.recv_parts)
        return o->call.recv_parts[sender];
    return (hbm_part){is_from_root(o) ? 0 : (uint64_t)sender * o->block, o->block};
}

/* Whether only the sender knows the parts of its buffer, and so posts a table of them. */
static inline int has_table(const hbm_operation *o)
{
    return o->call.operation == HBM_SCATTERV || o->call.operation == HBM_ALLTOALLV;
}

#endif
