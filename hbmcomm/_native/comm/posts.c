/* Posts: a rank describes its part in a call, and reads the descriptions of others.

   A post has a slot. The slot is reused SLOTS calls later or, where calls without a post come
   between, later still; all its readers have then completed the call that it was for. A post
   carries a hash over all calls so far; a reader compares it first, and so checks every call since
   the beginning at once.

   Ordering: `sequence` is stored last, with release, and loaded first, with acquire: a reader that
   finds the call's number sees the whole post and its data. Before a slot is reused, `calls` of its
   readers is loaded with acquire, after their release store at the end of the call.

   Models: comm/recall.pml, comm/posts.pml */
#include "comm/posts.h"

#include "comm/failure.h"
#include "kernels/shapes.h"

static uint64_t pack(const hbm_call *call)
{
    return (uint64_t)call->operation | (uint64_t)call->dtype << 8 | (uint64_t)call->reduction << 16
           | (uint64_t)(uint32_t)call->root << 32;
}

/* Ranks may pass different counts where blocks differ in length. */
static uint64_t common_count(const hbm_call *call)
{
    return shape_of(call->operation)->lengths == HBM_EQUAL ? call->count : 0;
}

/* What ranks must agree on in a call that only moves data is its length in bytes, whatever the
   dtypes that they name; see hbm_same_call(). */
static uint64_t compared_length(const hbm_operation *o, uint64_t count)
{
    return count && only_moves(o->call.operation) ? o->block : count;
}

static uint64_t chained(uint64_t chain, uint64_t what, uint64_t count)
{
    chain = (chain ^ what) * 0x9E3779B97F4A7C15u;
    chain = (chain ^ (chain >> 29) ^ count) * 0xBF58476D1CE4E5B9u;
    return chain ^ (chain >> 32);
}

static void record_call(hbm_comm *c, uint64_t sequence, uint64_t what, uint64_t count)
{
    past_call *e = &c->own->history[sequence % HISTORY];
    atomic_store_explicit(&e->sequence, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&e->what, what, memory_order_relaxed);
    atomic_store_explicit(&e->count, count, memory_order_relaxed);
    atomic_store_explicit(&e->sequence, sequence, memory_order_release);
}

int hbm_has_completed(hbm_operation *o, int rank, uint64_t sequence)
{
    hbm_comm *c = o->comm;
    if (c->known[rank] >= sequence)
        return 1;
    word *calls = &c->peers[rank].control->calls;
    uint64_t completed = atomic_load_explicit(&calls->value, memory_order_acquire);
    if (completed != c->known[rank]) /* else the line is still in this CPU's cache */
        count_word(o, rank, calls, 0);
    c->known[rank] = completed;
    if (c->known[rank] >= sequence)
        return 1;
    c->awaiting = (awaited){rank, &calls->value, sequence};
    return 0;
}

static int all_have_completed(hbm_operation *o, const int *ranks, int count, uint64_t sequence)
{
    for (int i = 0; i < count; i++)
        if (!hbm_has_completed(o, ranks[i], sequence))
            return 0;
    return 1;
}

/* The ranks of its own part, and in every other part the one that reads from this rank. */
static int grid_has_completed(hbm_operation *o, uint64_t sequence)
{
    const hbm_parts *p = &o->comm->groups.grid;
    int part = p->of[o->comm->rank], number = p->number[o->comm->rank];
    for (int other = 0; other < p->count; other++) {
        int m = part_size(p, other);
        const int *ranks = p->members + p->first[other];
        if (other != part ? !hbm_has_completed(o, ranks[number % m], sequence)
                          : !all_have_completed(o, ranks, m, sequence))
            return 0;
    }
    return 1;
}

/* Whether the readers of this rank's posts of call `sequence` have completed it. */
static int readers_have_completed(hbm_operation *o, uint64_t sequence)
{
    hbm_comm *c = o->comm;
    const hbm_groups *g = &c->groups;
    const hbm_tree *t;
    int root = c->roots[sequence % SLOTS];
    switch (c->readers[sequence % SLOTS]) {
    case READ_BY_GROUPS:
        for (int i = 0; i < g->step_count; i++)
            if (!all_have_completed(o, g->steps[i].readers, g->steps[i].reader_count, sequence))
                return 0;
        return 1;
    case READ_BY_TREE:
        t = hbm_tree_of(&c->groups, root);
        return (t->parent < 0 || hbm_has_completed(o, t->parent, sequence))
               && all_have_completed(o, t->children, t->child_count, sequence);
    case READ_BY_GRID:
        return grid_has_completed(o, sequence);
    case READ_BY_ROOT:
        return hbm_has_completed(o, root, sequence);
    case READ_BY_ALL:
        return all_have_completed(o, g->order, c->size, sequence);
    default:
        return 1;
    }
}

void hbm_number_call(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t what = pack(&o->call), count = common_count(&o->call);
    o->sequence = ++c->sequence;
    c->known[c->rank] = o->sequence;
    c->chain = chained(c->chain, compared_part(what), compared_length(o, count));
    record_call(c, o->sequence, what, count);
}

int hbm_begin_call(hbm_operation *o, int readers)
{
    if (!o->sequence)
        hbm_number_call(o);
    uint64_t last = o->comm->posted[o->sequence % SLOTS];
    if (last && last != o->sequence && !readers_have_completed(o, last))
        return HBM_PENDING;
    hbm_read_by(o, readers);
    return HBM_OK;
}

void hbm_read_by(hbm_operation *o, int readers)
{
    o->comm->posted[o->sequence % SLOTS] = o->sequence;
    o->comm->readers[o->sequence % SLOTS] = (unsigned char)readers;
    o->comm->roots[o->sequence % SLOTS] = o->call.root;
}

static void publish(hbm_operation *o, post *p)
{
    set_post_hops(o, p);
    atomic_store_explicit(&p->chain, o->comm->chain, memory_order_relaxed);
    atomic_store_explicit(&p->sequence, o->sequence, memory_order_release);
    o->comm->ring_later = 1;
}

/* While a post is written its sequence is 0, for readers that are behind or ahead of the call. */
static void open_post(post *p)
{
    atomic_store_explicit(&p->sequence, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
}

unsigned char *hbm_slot_room(hbm_operation *o, int record, uint64_t offset, uint64_t bytes)
{
    post *p = post_of(o->comm->own, record, o->sequence);
    return bytes <= INLINE_BYTES
               ? p->data : slot_data(o->comm->own, o->sequence) + offset;
}

const unsigned char *hbm_post_data(const hbm_operation *o, int rank, const post *p, uint64_t offset,
                              uint64_t bytes)
{
    return bytes <= INLINE_BYTES
               ? p->data
               : slot_data(o->comm->peers[rank].control, o->sequence) + offset;
}

void hbm_post(hbm_operation *o, const void *data, uint64_t bytes, uint32_t flags)
{
    hbm_comm *c = o->comm;
    post *p = post_of(c->own, 0, o->sequence);
    open_post(p);
    p->send = o->send_at;
    p->recv = o->recv_at;
    p->flags = flags;
    p->room = (uint32_t)o->room;
    p->bytes = bytes;
    if (data && bytes)
        memcpy(hbm_slot_room(o, 0, 0, bytes), data, bytes);
    publish(o, p);
}

void hbm_record(hbm_operation *o, int record, uint32_t flags)
{
    post *p = post_of(o->comm->own, record, o->sequence);
    p->send = o->send_at;
    p->recv = o->recv_at;
    p->flags = flags;
    publish(o, p);
}

int hbm_find_post(hbm_operation *o, int rank, int record, const post **posted)
{
    hbm_comm *c = o->comm;
    const post *p = post_of(c->peers[rank].control, record, o->sequence);
    uint64_t sequence = atomic_load_explicit(&p->sequence, memory_order_acquire);
    if (sequence < o->sequence) {
        c->awaiting = (awaited){rank, &p->sequence, o->sequence};
        return HBM_PENDING;
    }
    if (sequence > o->sequence
        || atomic_load_explicit(&p->chain, memory_order_relaxed) != c->chain)
        return hbm_mismatch(c, rank);
    if (c->known[rank] < sequence - 1)
        c->known[rank] = sequence - 1;
    count_post(o, rank, p);
    *posted = p;
    return HBM_OK;
}
