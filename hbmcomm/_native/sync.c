/* All ranks meet: at the beginning of a call, to compare and agree; within a call, as a barrier.

   Both go along the groups, the smallest first: a rank reads what one rank of each sibling group
   wrote, and then writes for the next larger group. After the last step each rank knows something of
   every rank, having read as many lines as it has siblings. Each write is a release and each read an
   acquire, so that what a rank wrote before it met the others is seen by all after that. */
#include "comm.h"
#include "paths.h"

/* Follows hbm_post. o->flags begin as what this rank posted, and end as what all posted. */
int hbm_enter(hbm_operation *o)
{
    const hbm_groups *g = &o->comm->groups;
    for (; o->step < g->step_count; o->step++, o->peer = 0) {
        const hbm_exchange_step *s = &g->steps[o->step];
        for (; o->peer < s->mate_count; o->peer++) {
            const post *p;
            int status = hbm_met(o, s->mates[o->peer], s->mate_records[o->peer], &p);
            if (status)
                return status;
            o->flags &= p->flags;
            if (p->send != o->send_at || p->recv != o->recv_at)
                o->flags &= ~(uint32_t)SAME_PLACES;
        }
        if (o->step + 1 < g->step_count)
            hbm_record(o, g->steps[o->step + 1].own_record, o->flags);
    }
    o->step = 0;
    return HBM_OK;
}

/* This rank has come to a step of the call, though it does not wait for the others yet. */
void hbm_arrive(hbm_operation *o, uint64_t step)
{
    hbm_comm *c = o->comm;
    if (!c->groups.step_count)
        return;
    signal_step(o, &c->own->sync[c->groups.steps[0].own_record], step);
    hbm_ring(c);
}

/* Nobody passes before all have come here with the same step of the same call, or a later one.

   The last thing that a rank does in a call that has such barriers is to pass one: then nobody reads
   the posts of the call any more. */
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

/* What Barrier does, and every call that MPI serves: then all call the same. */
int hbm_barrier_path(hbm_operation *o)
{
    if (!o->stage) {
        int status = hbm_begin(o, READ_BY_GROUPS);
        if (status)
            return status;
        hbm_post(o, NULL, 0, 0);
        o->stage = 1;
    }
    return hbm_enter(o);
}
