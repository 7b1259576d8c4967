/* Gather, scatter, allgather, alltoall, of blocks of one length or of many: receivers fetch blocks
   from senders, each as its sender offers it. Also broadcast, where the root's array is not shared.

   In a gather, leaves with long blocks copy them into the root's array themselves where they can,
   so that several ranks copy at once.

   Ordering: rendezvous.c and pieces.c have it for offers and pieces. A leaf that copies into the
   root's array posts after that, with release; the root loads that post with acquire.

   Model: algorithms/pieces.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "algorithms/blocks.h"
#include "comm/failure.h"
#include "algorithms/pieces.h"
#include "algorithms/post_offer.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

/* Where the root of a gather receives this rank's block. In a gatherv the root alone knows the places
   of blocks, and posts them. */
static hbm_part place_at_root(const hbm_operation *o, const post *p)
{
    uint64_t rank = (uint64_t)o->comm->rank;
    hbm_part place = {rank * o->block, o->block};
    if (o->call.operation == HBM_GATHERV) {
        uint64_t bytes = (uint64_t)o->comm->size * sizeof place;
        memcpy(&place, hbm_post_data(o, o->call.root, p, 0, bytes) + rank * sizeof place,
               sizeof place);
    }
    return place;
}

/* A leaf of a gather with a long block: after the root has posted, copies it into the root's
   array. */
static int push(hbm_operation *o)
{
    const post *p;
    int root = o->call.root, status = hbm_find_post(o, root, 0, &p);
    if (status)
        return status;
    const volatile post *posted = p;
    hbm_part own = part_for(o, root), place = place_at_root(o, p);
    uint32_t flags = posted->flags;
    int is_long = flags & RECV_IN_ARENA || own.bytes >= o->comm->tuning.push_bytes;
    if (!(flags & REACHABLE) || !is_long || own.bytes != place.bytes)
        return hbm_post_offer(o); /* the root reports lengths that differ */
    if (!hbm_send_into(o, root, p, place.offset, (const char *)o->call.send + own.offset, own.bytes))
        return o->comm->failure.status ? o->comm->failure.status : hbm_post_offer(o);
    if (o->streaming)
        hbm_stream_end();
    o->offer = PUSHED;
    hbm_post(o, NULL, 0, PUSHED);
    return HBM_OK;
}

/* Bytes up to which a leaf waits for nobody. Where lengths differ a message that has room in a slot is
   never pushed: calls of Python objects rely on that. */
static uint64_t unpushed(const hbm_operation *o)
{
    int waits = o->call.operation == HBM_GATHER || o->sends_from_arena;
    return waits ? eager_bytes(o) : short_bytes(o);
}

static int offer(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int operation = o->call.operation, at_root = c->rank == o->call.root;
    if (operation == HBM_GATHERV && at_root)
        hbm_post(o, o->call.recv_parts, (uint64_t)c->size * sizeof(hbm_part), hbm_reception(o));
    else if (operation == HBM_GATHER && at_root && o->block > eager_bytes(o))
        hbm_post(o, NULL, 0, hbm_reception(o));
    else if (is_to_root(o) && !at_root && part_for(o, o->call.root).bytes > unpushed(o))
        return push(o);
    return is_sender(o, c->rank) ? hbm_post_offer(o) : HBM_OK;
}

static void copy_own(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int root = o->call.root, from_root = is_from_root(o), to_root = is_to_root(o);
    if ((from_root || to_root) && c->rank != root)
        return;
    hbm_part from = part_for(o, c->rank), to = part_from(o, c->rank);
    (o->streaming ? hbm_stream : hbm_copy)((char *)o->call.recv + to.offset,
                                           (const char *)o->call.send + from.offset, to.bytes);
}

static int receive(hbm_operation *o, int sender)
{
    const post *p;
    int status = hbm_find_post(o, sender, 0, &p);
    if (status)
        return status;
    hbm_part to = part_from(o, sender), from = {0, to.bytes};
    const volatile post *posted = p;
    uint64_t given = posted->bytes;
    uint32_t flags = posted->flags;
    if (has_table(o)) {
        const unsigned char *table = hbm_post_data(o, sender, p, 0, given);
        memcpy(&from, table + (size_t)o->comm->rank * sizeof from, sizeof from);
    } else if (sends_to_each(&o->call)) {
        from.offset = (uint64_t)o->comm->rank * o->block;
    } else if (!(flags & PUSHED)) {
        from.bytes = given;
    }
    if (from.bytes != to.bytes)
        return hbm_blame_lengths(o->comm, sender, from.bytes, to.bytes);
    o->seen |= flags;
    if (flags & (IN_STAGING | PUSHED))
        return HBM_OK;
    return hbm_receive(o, sender, p, from.offset, (char *)o->call.recv + to.offset, to.bytes);
}

static int consume(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!is_receiver(o, c->rank))
        return HBM_OK;
    for (; o->peer < c->size; o->peer++) {
        int sender = next_of(o, o->peer);
        staged_piece piece = {.bytes = 0};
        int status = is_sender(o, sender) ? hbm_find_piece(o, sender, &piece) : HBM_OK;
        if (status)
            return status;
        char *to = (char *)o->call.recv + part_from(o, sender).offset + piece.offset;
        copy_staged(o, to, piece.from, piece.bytes);
        count_from(c, sender, piece.bytes);
    }
    hbm_signal_consumed(o);
    return HBM_OK;
}

/* ---- the whole ---- */

static int readers_of(const hbm_operation *o)
{
    if (o->comm->rank == o->call.root)
        return READ_BY_ALL;
    return is_from_root(o) ? READ_BY_NOBODY : is_to_root(o) ? READ_BY_ROOT : READ_BY_ALL;
}

enum { BEGINNING, OFFERING, TAKING, PRODUCING, CONSUMING, WAITING };

int hbm_exchange_offered(hbm_operation *o)
{
    o->advance = hbm_exchange;
    o->stage = TAKING;
    o->peer = 1;
    return hbm_exchange(o);
}

/* On several nodes, ranks first find out whether all arrays are in the arena; then they go by
   nodes. */
int hbm_allgather_agreed(hbm_operation *o)
{
    int status;
    if (o->stage == BEGINNING) {
        status = hbm_begin_call(o, READ_BY_ALL);
        if (!status)
            status = hbm_post_offer(o);
        if (status)
            return status;
        o->stage = OFFERING;
    }
    status = hbm_enter(o);
    if (status)
        return status;
    if (o->flags & IN_ARENA && o->flags & RECV_IN_ARENA) {
        o->stage = BEGINNING;
        o->advance = hbm_allgather_by_nodes;
        return hbm_allgather_by_nodes(o);
    }
    copy_own(o);
    return hbm_exchange_offered(o);
}

int hbm_exchange(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, readers_of(o));
        if (status)
            return status;
        o->stage = OFFERING;
        /* fall through */
    case OFFERING:
        status = offer(o);
        if (status)
            return status;
        copy_own(o);
        o->stage = TAKING;
        o->peer = 1;
        /* fall through */
    case TAKING:
        for (; o->peer < c->size && is_receiver(o, c->rank); o->peer++) {
            if (!is_sender(o, next_of(o, o->peer)))
                continue;
            status = receive(o, next_of(o, o->peer));
            if (status)
                return status;
        }
        o->reads_memory = (o->seen & (BY_REFERENCE | IN_STAGING)) != 0;
        status = hbm_begin_pieces(o);
        if (status)
            return status;
        o->stage = PRODUCING;
        o->peer = 0;
        /* fall through */
    case PRODUCING:
    case CONSUMING:
        while (o->piece < o->pieces) {
            status = o->stage == PRODUCING ? hbm_produce(o) : consume(o);
            if (status)
                return status;
            o->piece += o->stage == CONSUMING;
            o->peer = o->stage == PRODUCING;
            o->stage = o->stage == PRODUCING ? CONSUMING : PRODUCING;
        }
        hbm_done_receiving(o);
        o->stage = WAITING;
        o->peer = 0;
        /* fall through */
    case WAITING:
        for (; o->offer & (BY_REFERENCE | IN_STAGING) && o->peer < c->size; o->peer++)
            if (o->peer != c->rank && is_receiver(o, o->peer)
                && !reached(o, o->peer, &c->peers[o->peer].control->done, at_step(o, LAST_STEP)))
                return HBM_PENDING;
    }
    return HBM_OK;
}
