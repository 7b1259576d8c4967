/* Barriers: at the beginning of a call, where ranks compare and combine their posts; and within
   one.

   Both follow the groups, the smallest first: a rank reads what one rank of each sibling group
   wrote, and then writes for the next larger group. After the last step each rank has information
   from every rank, and has read as many lines as it has siblings.

   Ordering: each write is a release and each read an acquire, so that all that a rank wrote before
   the barrier is visible to all ranks after it.

   Models: algorithms/barrier.pml, algorithms/reduce_staged.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "algorithms/blocks.h"
#include "comm/bell.h"
#include "comm/posts.h"
#include "kernels/copy.h"

int hbm_enter(hbm_operation *o)
{
    const hbm_groups *g = &o->comm->groups;
    for (; o->step < g->step_count; o->step++, o->peer = 0) {
        const hbm_exchange_step *s = &g->steps[o->step];
        for (; o->peer < s->mate_count; o->peer++) {
            const post *p;
            int status = hbm_find_post(o, s->mates[o->peer], s->mate_records[o->peer], &p);
            if (status)
                return status;
            o->flags &= p->flags;
            if (p->send != o->send_at || p->recv != o->recv_at)
                o->flags &= ~(uint32_t)SAME_OFFSETS;
        }
        if (o->step + 1 < g->step_count)
            hbm_record(o, g->steps[o->step + 1].own_record, o->flags);
    }
    o->step = 0;
    return HBM_OK;
}

void hbm_signal_arrival(hbm_operation *o, uint64_t step)
{
    hbm_comm *c = o->comm;
    if (!c->groups.step_count)
        return;
    signal_step(o, &c->own->sync[c->groups.steps[0].own_record], step);
    hbm_ring(c);
}

/* A call with such barriers ends with one: after it no rank reads the call's posts. */
int hbm_sync(hbm_operation *o, uint64_t step)
{
    hbm_comm *c = o->comm;
    const hbm_groups *g = &c->groups;
    uint64_t target = at_step(o, step);
    for (; o->step < g->step_count; o->step++, o->peer = 0) {
        const hbm_exchange_step *s = &g->steps[o->step];
        word *own = &c->own->sync[s->own_record];
        if (atomic_load_explicit(&own->value, memory_order_relaxed) < target) {
            signal_step(o, own, step);
            hbm_ring(c);
        }
        for (; o->peer < s->mate_count; o->peer++) {
            int mate = s->mates[o->peer];
            if (!reached(o, mate, &c->peers[mate].control->sync[s->mate_records[o->peer]], target))
                return HBM_PENDING;
        }
    }
    o->step = 0;
    hbm_read_by(o, READ_BY_NOBODY);
    return HBM_OK;
}

/* A call that MPI serves: later calls compare it. Waits for nobody. */
int hbm_note_path(hbm_operation *o)
{
    hbm_number_call(o);
    return HBM_OK;
}

/* Barrier, and with `check_calls` every call that MPI serves: it checks that all ranks make the
   same call. */
int hbm_barrier_path(hbm_operation *o)
{
    if (!o->stage) {
        int status = hbm_begin_call(o, READ_BY_GROUPS);
        if (status)
            return status;
        hbm_post(o, NULL, 0, 0);
        o->stage = 1;
    }
    return hbm_enter(o);
}

/* A communicator of one rank: what it sends is what it receives. No other rank, so no ordering. */
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
