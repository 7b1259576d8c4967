/* Which blocks each rank sends to which, and where they are in the arrays of this rank. */
#ifndef HBMCOMM_BLOCKS_H
#define HBMCOMM_BLOCKS_H

#include "comm/comm.h"
#include "kernels/shapes.h"

static inline int is_from_root(const hbm_operation *o)
{
    return shape_of(o->call.operation)->from_root;
}

/* In reductions every rank reads what others send, whoever gets the result. */
static inline int is_to_root(const hbm_operation *o)
{
    const hbm_shape *shape = shape_of(o->call.operation);
    return shape->to_root && !shape->reduces;
}

static inline int sends_to_each(const hbm_call *call)
{
    return shape_of(call->operation)->sends_each;
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
    const hbm_shape *shape = shape_of(o->call.operation);
    return shape->sends_each && shape->lengths == HBM_OWN;
}

#endif
