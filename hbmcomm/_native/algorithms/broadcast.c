/* Broadcast of messages that do not fit a slot: each rank copies from the root or, where the root
   is on another node, from a rank that already has the data, piece by piece.

   In the arena the first rank of each other NUMA node copies from the root, and its mates copy from
   it: every byte crosses to each node once. Private memory is read along the tree, so that few
   ranks read from one process at a time. hbm_exchange() does broadcasts through the slot or through
   staging buffers. Where few ranks share one node and all arrays are in the arena, the root copies
   too.

   Ordering: a rank that passes data on stores `ready` with release after each piece, and streaming
   stores are fenced before that. Its followers load `ready` with acquire. Each follower stores
   `done` with release after its reads, and a rank leaves the call after it loaded those with
   acquire.

   Model: algorithms/passing.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "comm/bell.h"
#include "algorithms/pieces.h"
#include "algorithms/post_offer.h"
#include "comm/posts.h"
#include "comm/private.h"
#include "algorithms/rendezvous.h"

#define LEAST_PIECE (16 * KIB)

enum { BEGINNING, MEETING, FINDING, COPYING, ENDING, SHARED };

/* Short enough that a rank begins to pass a message on before it has all of it. */
static uint64_t piece_of(const hbm_operation *o)
{
    uint64_t most = o->comm->tuning.piece_bytes, quarter = o->block / 4 / LINE * LINE;
    if (quarter < LEAST_PIECE)
        quarter = LEAST_PIECE;
    return room_for(o, o->block, quarter < most ? quarter : most);
}

static int leader_of(const hbm_operation *o, int node)
{
    const hbm_parts *nodes = &o->comm->groups.nodes;
    return nodes->of[o->call.root] == node ? o->call.root : part_member(nodes, node, 0);
}

/* The rank that a rank copies from. */
static int source_of(hbm_operation *o, int rank)
{
    if (o->seen & IN_PRIVATE)
        return hbm_tree_of(&o->comm->groups, o->call.root)->parent;
    int leader = leader_of(o, o->comm->groups.nodes.of[rank]);
    return leader == rank ? o->call.root : leader;
}

/* ---- the ranks that copy from this rank ---- */

static int follows(const hbm_operation *o, int rank)
{
    const hbm_comm *c = o->comm;
    int leader = leader_of(o, c->groups.nodes.of[rank]);
    return leader == rank ? c->rank == o->call.root : leader == c->rank;
}

/* The followers of this rank, one after the other; -1 after the last. */
static int follower(hbm_operation *o, int from, int *next)
{
    hbm_comm *c = o->comm;
    if (o->seen & IN_PRIVATE) {
        const hbm_tree *t = hbm_tree_of(&c->groups, o->call.root);
        *next = from + 1;
        return from < t->child_count ? t->children[from] : -1;
    }
    if (c->rank != leader_of(o, c->groups.nodes.of[c->rank]))
        return -1;
    while (from < c->size && (from == c->rank || !follows(o, from)))
        from++;
    *next = from + 1;
    return from < c->size ? from : -1;
}

static int followers_are_done(hbm_operation *o)
{
    int next = 0;
    for (int rank; (rank = follower(o, o->peer, &next)) >= 0; o->peer = next)
        if (!reached(o, rank, &o->comm->peers[rank].control->done, at_step(o, LAST_STEP)))
            return 0;
    return 1;
}

/* ---- copying ---- */

/* Posts where followers find the data, if this rank has any. */
static void post_own(hbm_operation *o)
{
    int next;
    if (follower(o, 0, &next) < 0)
        return;
    o->offer = o->receives_in_arena ? IN_ARENA : hbm_reads_private(o->comm) ? IN_PRIVATE : 0;
    o->send_at = o->offer == IN_PRIVATE ? o->call.recv : o->recv_at;
    hbm_read_by(o, o->seen & IN_PRIVATE ? READ_BY_TREE : READ_BY_GRID);
    hbm_post(o, NULL, o->block, o->offer);
}

/* Whether this rank is part of a chain; otherwise the whole message is one piece. */
static int passes_on(hbm_operation *o)
{
    return o->offer || source_of(o, o->comm->rank) != o->call.root;
}

static int copy_pieces(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    const post *p;
    int source = source_of(o, c->rank), status = hbm_find_post(o, source, 0, &p);
    if (!status && !(p->flags & BY_REFERENCE)) { /* this source's memory is not accessible */
        source = o->call.root;
        status = hbm_find_post(o, source, 0, &p);
    }
    for (; !status && o->piece < o->pieces; o->piece++) {
        uint64_t at = o->piece * o->room, bytes = o->block - at < o->room ? o->block - at : o->room;
        if (source != o->call.root
            && !reached(o, source, &c->peers[source].control->ready, at_step(o, o->piece + 1)))
            return HBM_PENDING;
        status = hbm_receive(o, source, p, at, (char *)o->call.recv + at, bytes);
        if (!o->offer)
            continue;
        if (o->streaming)
            hbm_stream_end();
        signal_step(o, &c->own->ready, o->piece + 1);
        hbm_ring(c);
    }
    return status;
}

/* ---- where the root copies too ---- */

/* Each rank copies most of its own output and the root copies the rest: equal work for all. Steps of
   the root: it has copied everywhere, or could not write to all of them. */
enum { COPIED = 1, REFUSED = 2 };

static uint64_t own_share(const hbm_operation *o)
{
    return o->block - o->block / (uint64_t)o->comm->size / LINE * LINE;
}

static int take_share(hbm_operation *o, uint64_t from, uint64_t to)
{
    const post *p;
    int status = hbm_find_post(o, o->call.root, 0, &p);
    return status ? status
                  : hbm_receive(o, o->call.root, p, from, (char *)o->call.recv + from, to - from);
}

static int share(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int root = o->call.root;
    uint64_t own = own_share(o), step = COPIED;
    const post *p;
    if (c->rank != root) {
        int status = take_share(o, 0, own);
        if (!o->is_written) /* else it may need more */
            hbm_done_receiving(o);
        return status;
    }
    for (int r = 0; r < c->size && own < o->block; r++) {
        if (r == root)
            continue;
        int status = hbm_find_post(o, r, 0, &p);
        if (status)
            return status;
        if (!hbm_send_into(o, r, p, own, (const char *)o->call.send + own, o->block - own))
            step = REFUSED;
        if (c->failure.status)
            return c->failure.status;
    }
    if (o->streaming)
        hbm_stream_end();
    signal_step(o, &c->own->ready, step);
    return HBM_OK;
}

static int end_share(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int root = o->call.root, status = HBM_OK;
    const word *ready = &c->peers[root].control->ready;
    if (c->rank != root) {
        if (!reached(o, root, ready, at_step(o, COPIED)))
            return HBM_PENDING;
        if (!o->is_written)
            return HBM_OK;
        if (reached(o, root, ready, at_step(o, REFUSED)))
            status = take_share(o, own_share(o), o->block);
        hbm_done_receiving(o);
        return status;
    }
    for (; o->peer < c->size; o->peer++)
        if (o->peer != root
            && !reached(o, o->peer, &c->peers[o->peer].control->done, at_step(o, LAST_STEP)))
            return HBM_PENDING;
    return HBM_OK;
}

/* ---- the whole ---- */

static int all_post(const hbm_comm *c)
{
    return c->groups.levels == 1 && c->groups.nodes.count == 1
           && c->size <= (int)c->tuning.push_ranks;
}

static int begin(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint32_t any = IN_SLOT | IN_ARENA | IN_PRIVATE | IN_STAGING;
    int at_root = c->rank == o->call.root;
    int readers = at_root ? READ_BY_ALL : all_post(c) ? READ_BY_GROUPS : READ_BY_NOBODY;
    int status = hbm_begin_call(o, readers);
    if (status)
        return status;
    if (at_root)
        return hbm_post_offer(o);
    o->flags = any | hbm_reception(o);
    if (all_post(c))
        hbm_post(o, NULL, 0, o->flags);
    return HBM_OK;
}

int hbm_broadcast(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    const post *p;
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = begin(o);
        if (status)
            return status;
        o->stage = MEETING;
        /* fall through */
    case MEETING:
        status = all_post(c) ? hbm_enter(o) : HBM_OK;
        if (status)
            return status;
        if (all_post(c) && o->flags & BY_REFERENCE && o->flags & REACHABLE) {
            status = share(o);
            o->stage = SHARED;
            return status ? status : hbm_broadcast(o);
        }
        o->stage = FINDING;
        /* fall through */
    case FINDING:
        o->seen = o->offer;
        if (c->rank != o->call.root) {
            status = hbm_find_post(o, o->call.root, 0, &p);
            if (status)
                return status;
            o->seen = p->flags;
        }
        if (o->seen & (IN_SLOT | IN_STAGING)) {
            return hbm_exchange_offered(o);
        }
        if (c->rank != o->call.root)
            post_own(o);
        o->room = passes_on(o) ? piece_of(o) : o->block;
        o->pieces = (o->block + o->room - 1) / o->room;
        o->stage = COPYING;
        /* fall through */
    case COPYING:
        status = c->rank == o->call.root ? HBM_OK : copy_pieces(o);
        if (status)
            return status;
        if (o->offer)
            hbm_done_receiving(o);
        o->stage = ENDING;
        o->peer = 0;
        /* fall through */
    case ENDING:
        if (!followers_are_done(o))
            return HBM_PENDING;
        /* Ranks that copied from another rank have finished with the root only now. */
        hbm_done_receiving(o);
        return HBM_OK;
    default:
        return end_share(o);
    }
}
