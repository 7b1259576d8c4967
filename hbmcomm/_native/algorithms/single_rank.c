/* A communicator of one rank: what it sends is what it receives. No other rank, so no ordering. */
#include "algorithms/algorithms.h"
#include "rendezvous/blocks.h"
#include "cpu/copy.h"
#include "rendezvous/posts.h"

int hbm_single_rank(hbm_operation *o)
{
    int status = hbm_begin_call(o, READ_BY_NOBODY), operation = o->call.operation;
    uint64_t from = 0, to = 0;
    if (status || operation == HBM_EXSCAN || operation == HBM_BCAST)
        return status;
    if (operation < HBM_REDUCE || operation == HBM_REDUCE_SCATTER) {
        from = part_for(o, 0).offset;
        to = operation == HBM_REDUCE_SCATTER ? 0 : part_from(o, 0).offset;
    }
    hbm_copy((char *)o->call.recv + to, (const char *)o->call.send + from, o->block);
    return HBM_OK;
}
