/* Eager protocol: short messages travel in the posts, along the groups, and nobody waits for a
   reader.

   Broadcast goes down the tree with the root at its top, reduction goes up. A rank reads only what
   it needs; a leaf of a reduction reads nothing. In an allreduce all ranks exchange partial
   results, the smallest groups first. Every rank reduces groups in the same order, so the result
   has the same bits on every rank, whatever the root.

   Ordering: posts.c; the data is part of the post. */
#include "algorithms/algorithms.h"
#include "kernels/copy.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

static uint64_t offset_of(int record, uint64_t bytes)
{
    return (uint64_t)record * ((bytes + LINE - 1) / LINE * LINE);
}

uint64_t hbm_eager_room(const hbm_comm *c, uint64_t bytes)
{
    return offset_of(c->groups.levels, bytes);
}

int hbm_bcast_eager(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!o->stage) {
        int status = hbm_begin_call(o, READ_BY_TREE);
        if (status)
            return status;
        o->stage = 1;
    }
    const hbm_tree *t = hbm_tree_of(&c->groups, o->call.root);
    if (t->parent >= 0) {
        const post *p;
        int status = hbm_find_post(o, t->parent, 0, &p);
        if (status)
            return status;
        hbm_copy((void *)o->call.recv, hbm_post_data(o, t->parent, p, 0, o->block), o->block);
        count_from(c, t->parent, o->block);
    }
    if (t->child_count)
        hbm_post(o, (const void *)o->call.recv, o->block, IN_SLOT);
    return HBM_OK;
}

/* Sets the inputs: the contributions of a group's children, in their order. */
static int gather_children(hbm_operation *o, const hbm_group *group, const void *own)
{
    hbm_comm *c = o->comm;
    for (; o->peer < group->child_count; o->peer++) {
        int rank = hbm_leader(&c->groups, &group->children[o->peer], o->call.root);
        const post *p;
        c->in[o->peer] = own;
        if (rank == c->rank)
            continue;
        int status = hbm_find_post(o, rank, 0, &p);
        if (status)
            return status;
        c->in[o->peer] = hbm_post_data(o, rank, p, 0, o->block);
        count_from(c, rank, o->block);
    }
    o->peer = 0;
    return HBM_OK;
}

int hbm_reduce_eager(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int root = o->call.root, at_root = c->rank == root;
    if (!o->stage) {
        int status = hbm_begin_call(o, READ_BY_TREE);
        if (status)
            return status;
        o->led = c->groups.leaf;
        o->stage = 1;
    }
    void *partial = at_root ? (void *)o->call.recv : hbm_slot_room(o, 0, 0, o->block);
    for (; o->led->parent; o->led = o->led->parent) {
        const hbm_group *group = o->led->parent;
        if (hbm_leader(&c->groups, group, root) != c->rank)
            break;
        const void *own = o->led->count == 1 ? (const void *)o->call.send : partial;
        int status = gather_children(o, group, own);
        if (!status)
            status = reduce_into(o, group->child_count, &partial, 1, 0, o->block, IN_ORDER);
        if (status)
            return status;
    }
    if (at_root)
        return HBM_OK;
    hbm_post(o, o->led->count == 1 ? (const void *)o->call.send : NULL, o->block, IN_SLOT);
    return HBM_OK;
}

int hbm_allreduce_eager(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    const hbm_groups *g = &c->groups;
    if (!o->stage) {
        int status = hbm_begin_call(o, READ_BY_GROUPS);
        if (status)
            return status;
        hbm_post(o, (const void *)o->call.send, o->block, IN_SLOT);
        o->stage = 1;
    }
    for (; o->step < g->step_count; o->step++, o->peer = 0) {
        const hbm_exchange_step *s = &g->steps[o->step];
        for (; o->peer < s->mate_count; o->peer++) {
            int mate = s->mates[o->peer], record = s->mate_records[o->peer];
            const post *p;
            int status = hbm_find_post(o, mate, record, &p);
            if (status)
                return status;
            c->in[o->peer + (o->peer >= s->position)] =
                hbm_post_data(o, mate, p, offset_of(record, o->block), o->block);
            count_from(c, mate, o->block);
        }
        int last = o->step + 1 == g->step_count, record = last ? 0 : s[1].own_record;
        uint64_t own = offset_of(s->own_record, o->block);
        c->in[s->position] = !o->step ? (void *)o->call.send
                                      : hbm_slot_room(o, s->own_record, own, o->block);
        void *out = last ? (void *)o->call.recv
                         : hbm_slot_room(o, record, offset_of(record, o->block), o->block);
        int status = reduce_into(o, s->mate_count + 1, &out, 1, 0, o->block, IN_ORDER);
        if (status)
            return status;
        if (!last)
            hbm_record(o, record, IN_SLOT);
    }
    return HBM_OK;
}
