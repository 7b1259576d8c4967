/* Who gives what to whom in a call, and where the parts are in the arrays of this rank. */
#ifndef HBMCOMM_PARTS_H
#define HBMCOMM_PARTS_H

#include "offers.h"

static inline int is_from_root(const hbm_operation *o)
{
    int operation = o->call.operation;
    return operation == HBM_SCATTER || operation == HBM_SCATTERV || operation == HBM_BCAST;
}

static inline int is_to_root(const hbm_operation *o)
{
    return o->call.operation == HBM_GATHER || o->call.operation == HBM_GATHERV;
}

/* Whether a giver has another block for each taker. */
static inline int gives_to_each(const hbm_operation *o)
{
    switch (o->call.operation) {
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

static inline int gives(const hbm_operation *o, int rank)
{
    return is_from_root(o) ? rank == o->call.root : !is_to_root(o) || rank != o->call.root;
}

static inline int takes(const hbm_operation *o, int rank)
{
    return is_to_root(o) ? rank == o->call.root : !is_from_root(o) || rank != o->call.root;
}

/* What of this rank's send buffer another takes. */
static inline hbm_part part_for(const hbm_operation *o, int taker)
{
    if (o->call.send_parts)
        return o->call.send_parts[taker];
    return (hbm_part){gives_to_each(o) ? (uint64_t)taker * o->block : 0, o->block};
}

/* Where in this rank's receive buffer that of another belongs. */
static inline hbm_part part_from(const hbm_operation *o, int giver)
{
    if (o->call.recv_parts)
        return o->call.recv_parts[giver];
    return (hbm_part){is_from_root(o) ? 0 : (uint64_t)giver * o->block, o->block};
}

/* Whether only the giver knows where the parts of its buffer are. */
static inline int has_table(const hbm_operation *o)
{
    return o->call.operation == HBM_SCATTERV || o->call.operation == HBM_ALLTOALLV;
}

/* Bytes of a rank's staging buffers that pieces go round in: they stay in its cache. */
#define RING (1024 * 1024)

/* Of a message that some copy into staging buffers while others take it out: several pieces, so that
   both work at once. */
static inline uint64_t overlapping_piece(uint64_t block)
{
    const uint64_t least = 4 * 1024, most = 32 * 1024;
    uint64_t quarter = block / 4 / least * least;
    return quarter < least ? least : quarter < most ? quarter : most;
}

/* give.c */
int hbm_post_offer(hbm_operation *o);
/* pieces.c: through staging buffers */
void hbm_begin_pieces(hbm_operation *o);
int hbm_staging_is_free(hbm_operation *o);
int hbm_produce(hbm_operation *o);
int hbm_has_piece(hbm_operation *o, int giver, const void **from, uint64_t *bytes);
void hbm_consumed(hbm_operation *o);
int hbm_exchange_offered(hbm_operation *o);

#endif
