/* Gather, scatter, allgather, alltoall, of blocks of one length or of many: those who take fetch from
   those who give, each as its giver offers it. Broadcast too, from what is not shared.

   In a gather, leaves with long blocks put them into the root's array themselves where they can:
   many copy at once. */
#include "parts.h"
#include "paths.h"

/* A leaf of a gather with a long block: once the root is there, the block goes where it belongs. */
static int push(hbm_operation *o)
{
    const post *p;
    int root = o->call.root, status = hbm_met(o, root, 0, &p);
    if (status)
        return status;
    const volatile post *posted = p;
    if (!(posted->flags & RECV_IN_ARENA))
        return hbm_post_offer(o);
    void *to = hbm_array(o, root, posted->recv, (uint64_t)o->comm->rank * o->block, o->block);
    if (!to)
        return o->comm->failure.status;
    (o->streaming ? hbm_stream : hbm_copy)(to, (const void *)o->call.send, o->block);
    if (o->streaming)
        hbm_stream_end();
    count_to(o->comm, root, o->block);
    o->offer = PUSHED;
    hbm_post(o, NULL, 0, PUSHED);
    return HBM_OK;
}

static int offer(hbm_operation *o)
{
    int operation = o->call.operation;
    if (operation == HBM_GATHER && o->block > o->comm->tuning.eager_bytes) {
        if (o->comm->rank != o->call.root)
            return push(o);
        hbm_post(o, NULL, 0, o->receives_in_arena ? RECV_IN_ARENA : 0);
    }
    return gives(o, o->comm->rank) ? hbm_post_offer(o) : HBM_OK;
}

static void take_own(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int root = o->call.root, from_root = is_from_root(o), to_root = is_to_root(o);
    if ((from_root || to_root) && c->rank != root)
        return;
    hbm_part from = part_for(o, c->rank), to = part_from(o, c->rank);
    (o->streaming ? hbm_stream : hbm_copy)((char *)o->call.recv + to.offset,
                                           (const char *)o->call.send + from.offset, to.bytes);
}

static int take(hbm_operation *o, int giver)
{
    const post *p;
    int status = hbm_met(o, giver, 0, &p);
    if (status)
        return status;
    hbm_part to = part_from(o, giver), from = {0, to.bytes};
    const volatile post *posted = p;
    uint64_t given = posted->bytes;
    uint32_t flags = posted->flags;
    if (has_table(o)) {
        const unsigned char *table = hbm_data(o, giver, p, 0, given);
        memcpy(&from, table + (size_t)o->comm->rank * sizeof from, sizeof from);
    } else if (gives_to_each(o)) {
        from.offset = (uint64_t)o->comm->rank * o->block;
    } else if (!(flags & PUSHED)) {
        from.bytes = given;
    }
    if (from.bytes != to.bytes)
        return hbm_blame_lengths(o->comm, giver, from.bytes, to.bytes);
    o->seen |= flags;
    if (flags & (IN_STAGING | PUSHED))
        return HBM_OK;
    return hbm_take_from(o, giver, p, from.offset, (char *)o->call.recv + to.offset, to.bytes);
}

static int consume(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!takes(o, c->rank))
        return HBM_OK;
    for (; o->peer < c->size; o->peer++) {
        int giver = next_of(o, o->peer);
        const void *from = NULL;
        uint64_t bytes = 0;
        int status = gives(o, giver) ? hbm_has_piece(o, giver, &from, &bytes) : HBM_OK;
        if (status)
            return status;
        char *to = (char *)o->call.recv + part_from(o, giver).offset + o->piece * o->room;
        copy_staged(o, to, from, bytes);
        count_from(c, giver, bytes);
    }
    hbm_consumed(o);
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

/* Goes on with a call whose offers are posted. */
int hbm_exchange_offered(hbm_operation *o)
{
    o->advance = hbm_exchange;
    o->stage = TAKING;
    o->peer = 1;
    return hbm_exchange(o);
}

/* Ranks on several nodes meet first: where all arrays are in the arena, they go by nodes. */
int hbm_allgather_met(hbm_operation *o)
{
    int status;
    if (o->stage == BEGINNING) {
        status = hbm_begin(o, READ_BY_ALL);
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
    take_own(o);
    return hbm_exchange_offered(o);
}

int hbm_exchange(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin(o, readers_of(o));
        if (status)
            return status;
        o->stage = OFFERING;
        /* fall through */
    case OFFERING:
        status = offer(o);
        if (status)
            return status;
        take_own(o);
        o->stage = TAKING;
        o->peer = 1;
        /* fall through */
    case TAKING:
        for (; o->peer < c->size && takes(o, c->rank); o->peer++) {
            if (!gives(o, next_of(o, o->peer)))
                continue;
            status = take(o, next_of(o, o->peer));
            if (status)
                return status;
        }
        hbm_begin_pieces(o);
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
        hbm_done_taking(o);
        o->stage = WAITING;
        o->peer = 0;
        /* fall through */
    case WAITING:
        for (; o->offer & (BY_REFERENCE | IN_STAGING) && o->peer < c->size; o->peer++)
            if (o->peer != c->rank && takes(o, o->peer)
                && !reached(o, o->peer, &c->peers[o->peer].control->done, at_step(o, LAST_STEP)))
                return HBM_PENDING;
    }
    return HBM_OK;
}
