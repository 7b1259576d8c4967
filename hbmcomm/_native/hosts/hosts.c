/* A communicator of several hosts: how a call advances, and how a rank waits in it.

   A call is an operation in the queue of this communicator. It makes calls of the core among the
   ranks of this host, one after the other, while its flights go on between hosts.

   Ordering: the lock of the communicator guards the state; the communicator inside this host is
   locked only while this one is. Another thread reads `records` as ranks of one host read each
   other's (comm/failure.c): `sequence` is stored with release, before and after the rest. The other
   words that it reads guard no data. */
#include "hosts/flights.h"
#include "hosts/spread.h"

#include <stdlib.h>

#include "comm/failure.h"
#include "comm/lock.h"
#include "comm/progress.h"
#include "comm/wait.h"
#include "kernels/clock.h"
#include "kernels/dtype.h"
#include "kernels/shapes.h"

/* ---- calls on record ---- */

static void record(hbm_hosts *h, const hbm_operation *o)
{
    uint64_t number = atomic_load_explicit(&h->count_begun, memory_order_relaxed) + 1;
    int operation = o->call.operation;
    uint64_t root = has_root(operation) ? (uint32_t)o->call.root : 0;
    past_call *e = &h->records[number % RECORDED];
    atomic_store_explicit(&e->sequence, 0, memory_order_release);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&e->what, (uint64_t)operation | root << 32, memory_order_relaxed);
    atomic_store_explicit(&e->count, has_one_block(operation) ? o->block : 0,
                          memory_order_relaxed);
    atomic_store_explicit(&e->sequence, number, memory_order_release);
    atomic_store_explicit(&h->moved_at, now_ns(), memory_order_relaxed);
    atomic_store_explicit(&h->count_begun, number, memory_order_release);
}

int hbm_call_of(const hbm_comm *c, uint64_t number, hbm_made_call *call)
{
    const past_call *e = &c->hosts->records[number % RECORDED];
    if (!number || atomic_load_explicit(&e->sequence, memory_order_acquire) != number)
        return 0;
    uint64_t what = atomic_load_explicit(&e->what, memory_order_relaxed);
    *call = (hbm_made_call){(int32_t)(what & 0xFF), (int32_t)(what >> 32),
                            atomic_load_explicit(&e->count, memory_order_relaxed)};
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&e->sequence, memory_order_relaxed) == number;
}

void hbm_calls(const hbm_comm *c, uint64_t *begun, uint64_t *finished, uint64_t *waited_ns)
{
    const hbm_hosts *h = c->hosts;
    *finished = atomic_load_explicit(&h->count_finished, memory_order_acquire);
    *begun = atomic_load_explicit(&h->count_begun, memory_order_acquire);
    uint64_t now = now_ns(), moved = atomic_load_explicit(&h->moved_at, memory_order_relaxed);
    *waited_ns = *begun != *finished && now > moved ? now - moved : 0;
}

void hbm_lose(hbm_comm *c) { atomic_store_explicit(&c->hosts->lost, 1, memory_order_relaxed); }

/* ---- a call ---- */

/* Whether the call inside this host is complete. */
static int is_back(hbm_hosts *h, int *status)
{
    int sub_status = atomic_load_explicit(&h->sub.status, memory_order_relaxed);
    if (sub_status == HBM_PENDING) {
        hbm_advance(h->inside);
        sub_status = atomic_load_explicit(&h->sub.status, memory_order_relaxed);
    }
    if (sub_status == HBM_PENDING)
        return 0;
    h->is_inside = 0;
    h->moved = 1;
    if (sub_status)
        *status = hbm_blame(h->all, sub_status, h->all->rank);
    return 1;
}

enum { BEFORE, FLYING, AFTER };

static int meet(hbm_hosts *h, int turn)
{
    hbm_call call = {.operation = h->o->call.operation};
    return turn ? HBM_OK : hbm_start_inside(h, &call);
}

static const hbm_spread foreign = {.kind = ONE, .before = meet};

static const hbm_spread *spread_of(int operation)
{
    if (operation >= HBM_FOREIGN)
        return &foreign;
    return operation < HBM_REDUCE ? &hbm_spread_moves[operation]
                                  : &hbm_spread_reductions[operation];
}

static void begin_call(hbm_hosts *h, const hbm_operation *o)
{
    int operation = o->call.operation;
    h->o = o;
    h->spread = spread_of(operation);
    h->entry = shape_of(operation)->reduces ? entry_bytes(&o->call) : 1;
    h->count = h->entry ? o->block / h->entry : 0;
    h->root = has_root(operation) && has_one_block(operation) ? o->call.root : -1;
    h->lane = -1;
    for (int i = 0; i < h->leaders; i++)
        if (hbm_leader_of(h, h->host, i, h->root) == h->rank)
            h->lane = i;
    h->slices = h->spread->kind == ONE ? 1
                                       : hbm_slices(h->count, h->entry, h->leaders, h->hosts,
                                                    h->spread->kind, h->longest);
    h->begun = h->ended = h->slice = 0;
    h->part = BEFORE;
    h->turn = 0;
    for (int i = 0; i < AT_ONCE; i++)
        h->flights[i].is_over = 1;
    record(h, o);
}

/* Whether the current part may begin: at most AT_ONCE slices are on their way. */
static int may_begin(const hbm_hosts *h)
{
    return (h->part == BEFORE && h->begun - h->ended < AT_ONCE) || h->part == FLYING
           || hbm_has_landed(h, h->ended);
}

/* Ends the current part. The next slice begins before what follows the oldest one between hosts:
   links do not wait for that. */
static void end_part(hbm_hosts *h)
{
    h->turn = 0;
    if (h->part == BEFORE) {
        h->part = FLYING;
        return;
    }
    h->begun += h->part == FLYING;
    h->ended += h->part == AFTER;
    h->part = h->begun == h->slices || h->begun - h->ended > AT_ONCE ? AFTER : BEFORE;
    h->slice = h->part == AFTER ? h->ended : h->begun;
}

static int do_part(hbm_hosts *h)
{
    const hbm_spread *s = h->spread;
    if (h->part == FLYING)
        return s->fly ? s->fly(h) : HBM_OK;
    int (*act)(hbm_hosts *h, int turn) = h->part == BEFORE ? s->before : s->after;
    return act ? act(h, h->turn++) : HBM_OK;
}

/* Whether this rank may not send now; flights ask the same before each step. */
static int is_held_up(const hbm_hosts *h)
{
    return h->spread->kind == ONE && h->part != AFTER && hbm_has_news(h);
}

/* Does the parts that this rank may do now. */
static int advance_parts(hbm_hosts *h)
{
    int status = HBM_OK;
    for (;;) {
        if (h->is_inside && !is_back(h, &status))
            return HBM_PENDING;
        if (status)
            return status;
        if (h->ended == h->slices)
            return HBM_OK;
        if (!may_begin(h) || is_held_up(h))
            return HBM_PENDING;
        h->moved = 1;
        status = do_part(h);
        if (status == HBM_OK)
            end_part(h);
        else if (status != HBM_PENDING)
            return status;
        status = HBM_OK;
    }
}

#define KEPT_BYTES (1u << 20) /* of memory that later calls use again; longer ones go back */

static void shrink(hbm_room *room)
{
    if (room->bytes <= KEPT_BYTES)
        return;
    free(room->at);
    *room = (hbm_room){NULL, 0};
}

static void end_call(hbm_hosts *h)
{
    hbm_room *rooms[] = {&h->own, &h->staged, &h->packed};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++)
        shrink(rooms[i]);
    for (int i = 0; i < AT_ONCE; i++) {
        shrink(&h->flights[i].held);
        shrink(&h->flights[i].result);
    }
    uint64_t begun = atomic_load_explicit(&h->count_begun, memory_order_relaxed);
    atomic_store_explicit(&h->count_finished, begun, memory_order_release);
}

static int advance_call(hbm_operation *o)
{
    hbm_hosts *h = o->comm->hosts;
    int status;
    if (!o->stage) {
        begin_call(h, o);
        o->stage = 1;
    }
    if (h->wire.may && !h->wire.may(h->wire.self)) {
        if (h->is_inside)
            hbm_advance(h->inside);
        return HBM_PENDING;
    }
    do {
        h->moved = 0;
        status = hbm_advance_flights(h);
        if (!status)
            status = advance_parts(h);
        if (h->moved)
            atomic_store_explicit(&h->moved_at, now_ns(), memory_order_relaxed);
    } while (h->moved && status == HBM_PENDING);
    if (status == HBM_OK)
        end_call(h);
    return status;
}

/* ---- waiting ---- */

/* The request that the oldest flight waits for. */
static uint64_t *oldest_request(hbm_hosts *h)
{
    uint64_t *oldest = NULL, slice = UINT64_MAX;
    for (int i = 0; i < h->request_count; i++)
        if (h->flights[h->flight_of[i]].slice < slice) {
            slice = h->flights[h->flight_of[i]].slice;
            oldest = &h->requests[i];
        }
    return oldest;
}

/* A wire that can only wait may do so for the oldest flight: on every rank that flight needs
   nothing of later ones. */
static int wait_for_wire(hbm_hosts *h)
{
    int code = h->wire.wait(h->wire.self, oldest_request(h));
    if (code)
        hbm_wire_fails(h, code);
    return HBM_OK;
}

static int wait_inside(hbm_hosts *h)
{
    awaited a = h->inside->awaiting;
    hbm_unlock(h->all);
    hbm_lock_again(h->inside);
    int status = hbm_await(h->inside, &a, h->all);
    hbm_leave_wait(h->inside);
    hbm_lock_again(h->all);
    return status;
}

/* Only one of the two waits is possible: for a word of this host, or for the wire. */
static int wait_for_any(hbm_comm *c)
{
    hbm_hosts *h = c->hosts;
    int is_pending = atomic_load_explicit(&h->sub.status, memory_order_relaxed) == HBM_PENDING;
    int waits_for_word = h->is_inside && c->head == h->o && is_pending;
    if (waits_for_word && (!h->request_count || h->wire.wait))
        return wait_inside(h);
    if (h->wire.wait && h->request_count)
        return wait_for_wire(h);
    return hbm_pause(c, atomic_load_explicit(&h->moved_at, memory_order_relaxed));
}

/* ---- beginning and end ---- */

/* Ranks of this host must not wait for this one. What happened between hosts has no meaning for
   them. */
static void fail_inside(hbm_comm *c)
{
    int status = c->failure.status, known = status >= HBM_MISMATCH && status <= HBM_NO_MEMORY;
    hbm_comm *inside = c->hosts->inside;
    hbm_lock_again(inside);
    hbm_blame(inside, known ? status : HBM_CLOSED, inside->rank);
    hbm_progress(inside);
    hbm_leave_wait(inside);
}

static void free_hosts(hbm_comm *c)
{
    hbm_hosts *h = c->hosts;
    hbm_room *rooms[] = {&h->own, &h->staged, &h->packed, &h->lengths};
    int stays = hbm_cancel_flights(h) || h->is_inside; /* messages or ranks may still use memory */
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms && !stays; i++)
        free(rooms[i]->at);
    for (int i = 0; i < AT_ONCE && !stays; i++) {
        free(h->flights[i].held.at);
        free(h->flights[i].result.at);
    }
    if (stays)
        return;
    free(h->requests);
    free(h->flight_of);
    free(c->own);
    free(h->host_of);
    free(h->sent_parts);
    free(h->in);
    free(h);
}

static const hbm_served_by by_hosts = {advance_call, wait_for_any, fail_inside, free_hosts};

static int has_memory(hbm_hosts *h, hbm_comm *c)
{
    size_t ranks = (size_t)h->ranks, hosts = (size_t)h->hosts;
    h->host_of = calloc(4 * ranks + hosts + 1 + hosts, sizeof(int));
    h->sent_parts = calloc(3 * (ranks + hosts), sizeof *h->sent_parts);
    h->in = calloc(ranks, sizeof *h->in);
    c->peers = calloc(ranks, sizeof *c->peers);
    c->own = aligned_alloc(PAGE, (sizeof(control) + PAGE - 1) / PAGE * PAGE);
    if (!h->host_of || !h->sent_parts || !h->in || !c->peers || !c->own)
        return 0;
    memset(c->own, 0, sizeof(control));
    h->index_of = h->host_of + ranks;
    h->members = h->index_of + ranks;
    h->leading = h->members + ranks;
    h->first = h->leading + ranks;
    h->is_packed = h->first + hosts + 1;
    h->received_parts = h->sent_parts + ranks;
    h->packs = h->received_parts + ranks;
    h->pieces = (hbm_range *)(h->packs + hosts);
    return 1;
}

hbm_comm *hbm_open_hosts(hbm_comm *inside, const hbm_hosts_setup *setup, const hbm_wire *wire)
{
    hbm_comm *c = calloc(1, sizeof *c);
    hbm_hosts *h = calloc(1, sizeof *h);
    if (!c || !h) {
        free(c);
        free(h);
        return NULL;
    }
    *h = (hbm_hosts){.all = c, .inside = inside, .wire = *wire, .hosts = setup->hosts,
                     .rank = setup->rank, .ranks = setup->ranks, .leaders = setup->leaders,
                     .algorithm = setup->algorithm, .news = setup->news, .longest = setup->longest};
    *c = (hbm_comm){.by = &by_hosts, .hosts = h, .rank = setup->rank, .size = setup->ranks,
                    .oversubscribed = 1, .boot = inside->boot, .tuning = inside->tuning,
                    .arrays = inside->arrays, .staging = HBM_NOWHERE, .forks = hbm_forks(),
                    .shared_room = shared_room_of(setup->ranks),
                    /* several leaders have the ranks of their host reduce and scatter */
                    .user_room = setup->leaders > 1 ? shared_room_of(setup->ranks) : UINT64_MAX};
    atomic_store_explicit(&c->references, 1, memory_order_relaxed);
    if (!has_memory(h, c)) {
        hbm_release(c);
        return NULL;
    }
    hbm_place_ranks(h, setup);
    for (int rank = 0; rank < c->size; rank++)
        c->peers[rank].control = c->own; /* nobody else has words for this communicator */
    c->peers[c->rank].arrays = inside->peers[inside->rank].arrays;
    c->peers[c->rank].array_bytes = inside->peers[inside->rank].array_bytes;
    c->awaiting = (awaited){c->rank, &c->own->ready.value, UINT64_MAX};
    return c;
}
