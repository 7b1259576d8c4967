/* Prepares operations, and runs blocking calls.

   Ordering: the communicator's lock guards the operation. */
#include "algorithms/algorithms.h"
#include "algorithms/blocks.h"
#include "comm/failure.h"
#include "comm/lock.h"
#include "operations/operation.h"
#include "comm/progress.h"
#include "comm/wait.h"
#include "kernels/copy.h"
#include "kernels/dtype.h"
#include "kernels/shapes.h"

#define FEW_TO_SCAN 4         /* ranks */
#define MOST_TO_SCAN (8 * KIB) /* bytes of a message, where there are more */

/* ---- the memory of a call ---- */

static uint64_t extent_of(const hbm_part *parts, int count)
{
    uint64_t most = 0;
    for (int i = 0; i < count; i++)
        if (parts[i].bytes && parts[i].offset + parts[i].bytes > most)
            most = parts[i].offset + parts[i].bytes;
    return most;
}

static uint64_t sent_bytes(const hbm_operation *o)
{
    const hbm_shape *shape = shape_of(o->call.operation);
    if (o->call.send_parts)
        return extent_of(o->call.send_parts, o->comm->size);
    if (!shape->sends_each)
        return o->block;
    int sends = !shape->from_root || o->comm->rank == o->call.root;
    return sends && shape->lengths == HBM_EQUAL ? (uint64_t)o->comm->size * o->block : 0;
}

static uint64_t received_bytes(const hbm_operation *o)
{
    const hbm_shape *shape = shape_of(o->call.operation);
    if (o->call.recv_parts)
        return extent_of(o->call.recv_parts, o->comm->size);
    if (shape->to_root && o->comm->rank != o->call.root)
        return 0;
    if (!shape->receives_each)
        return o->block;
    return shape->lengths == HBM_EQUAL ? (uint64_t)o->comm->size * o->block : 0;
}

/* Where this rank's own block is in a buffer of blocks. */
static uint64_t own_offset(const hbm_operation *o, const hbm_part *parts)
{
    return parts ? parts[o->comm->rank].offset : (uint64_t)o->comm->rank * o->block;
}

/* Whether `send` and `recv` overlap in the one way that MPI allows: in place. */
static int is_in_place(const hbm_operation *o)
{
    const hbm_call *call = &o->call;
    const hbm_shape *shape = shape_of(call->operation);
    if (shape->sends_each && (shape->receives_each || shape->reduces))
        return 0;
    if (shape->receives_each)
        return call->send == call->recv + own_offset(o, call->recv_parts);
    if (shape->sends_each)
        return call->recv == call->send + own_offset(o, call->send_parts);
    return call->send == call->recv;
}

static int overlap(uintptr_t a, uint64_t a_bytes, uintptr_t b, uint64_t b_bytes)
{
    return a_bytes && b_bytes && a < b + b_bytes && b < a + a_bytes;
}

/* Blocks of one array may be between those of the other. */
static int blocks_overlap(const hbm_operation *o, uint64_t sent, uint64_t received)
{
    const hbm_call *call = &o->call;
    const hbm_part all_sent = {0, sent}, all_received = {0, received};
    const hbm_part *from = call->send_parts ? call->send_parts : &all_sent;
    const hbm_part *to = call->recv_parts ? call->recv_parts : &all_received;
    int froms = call->send_parts ? o->comm->size : 1, tos = call->recv_parts ? o->comm->size : 1;
    for (int i = 0; i < froms; i++)
        for (int j = 0; j < tos; j++)
            if (overlap(call->send + from[i].offset, from[i].bytes, call->recv + to[j].offset,
                        to[j].bytes))
                return 1;
    return 0;
}

static int is_awkward(const hbm_operation *o, uint64_t sent, uint64_t received)
{
    const hbm_call *call = &o->call;
    if (shape_of(call->operation)->reduces
        && ((sent ? call->send : 0) | (received ? call->recv : 0)) % hbm_alignment(call->dtype))
        return 1;
    return sent && received && overlap(call->send, sent, call->recv, received)
           && !is_in_place(o) && blocks_overlap(o, sent, received);
}

static int is_in_arena(const hbm_operation *o, uintptr_t address, uint64_t bytes, uint64_t *offset)
{
    const peer *own = &o->comm->peers[o->comm->rank];
    *offset = address - (uintptr_t)own->arrays;
    return *offset < own->array_bytes && bytes <= own->array_bytes - *offset;
}

static uint64_t longest_part(const hbm_part *parts, int count)
{
    uint64_t most = 0;
    for (int i = 0; parts && i < count; i++)
        most = parts[i].bytes > most ? parts[i].bytes : most;
    return most;
}

/* The longest block of a call, if every rank knows it, else 0. */
static uint64_t common_length(const hbm_call *call, int ranks, uint64_t block)
{
    int lengths = shape_of(call->operation)->lengths;
    if (lengths != HBM_LISTED)
        return lengths == HBM_EQUAL ? block : 0;
    uint64_t sent = longest_part(call->send_parts, ranks);
    uint64_t received = longest_part(call->recv_parts, ranks);
    return sent > received ? sent : received;
}

/* Whether pieces of the call have room in staging buffers, and a number for each of their steps.
   Every rank decides the same, from what all of them know.

   `shared_room`: bytes of a piece where a sender has a buffer for each rank. Half of what there is,
   because a piece is lengthened by at most an entry (room_for() of pieces.h). */
static int is_served(const hbm_call *call, int ranks, uint64_t shared_room, uint64_t *block)
{
    uint64_t entry = entry_bytes(call);
    uint64_t room = sends_to_each(call) ? shared_room : STAGING_BYTES / STAGING_DEPTH / 2;
    if (call->reduction == HBM_USER && (!entry || entry > room))
        return 0;
    return !__builtin_mul_overflow(call->count, entry, block)
           && common_length(call, ranks, *block) / MOST_PIECES < room;
}

hbm_shape hbm_shape_of(int operation) { return *shape_of(operation); }

int hbm_serves(const hbm_call *call, int ranks)
{
    uint64_t block;
    return is_served(call, ranks, shared_room_of(ranks), &block);
}

/* Sets the bytes that this rank sends and receives. Anything but HBM_OK: the call cannot begin. */
static int check(hbm_operation *o, uint64_t *sent, uint64_t *received)
{
    if (!is_served(&o->call, o->comm->size, o->comm->shared_room, &o->block))
        return HBM_UNSERVED;
    if (o->call.reduction == HBM_USER && entry_bytes(&o->call) > o->comm->user_room)
        return HBM_UNSERVED;
    *sent = sent_bytes(o);
    *received = received_bytes(o);
    return is_awkward(o, *sent, *received) ? HBM_COPY_FIRST : HBM_OK;
}

int hbm_prepare(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t sent, received;
    int status = check(o, &sent, &received);
    if (status)
        return status;
    o->sends_from_arena = is_in_arena(o, o->call.send, sent, &o->send_at);
    o->receives_in_arena = is_in_arena(o, o->call.recv, received, &o->recv_at);
    o->received = received;
    o->recv_offset = o->recv_at;
    atomic_store_explicit(&o->status, HBM_PENDING, memory_order_relaxed);
    o->sequence = o->piece = o->pieces = 0;
    o->stage = o->peer = o->step = 0;
    o->room = 0;
    o->flags = o->offer = o->seen = o->hops = 0;
    o->reads_memory = o->is_note = o->is_written = 0;
    o->advance = c->by ? c->by->advance : hbm_path(o);
    return c->failure.status;
}

int hbm_check(hbm_comm *c, const hbm_call *call)
{
    if (!c)
        return HBM_UNREADABLE;
    hbm_operation o = {.comm = c, .call = *call};
    uint64_t sent, received;
    return check(&o, &sent, &received);
}

/* ---- blocking ---- */

int hbm_run(hbm_comm *c, const hbm_call *call)
{
    if (!c || !call)
        return HBM_UNREADABLE;
    int status = hbm_enter_call(c);
    if (status)
        return status;
    hbm_operation o; /* other fields than hbm_prepare() sets stay unset: clearing takes time */
    o.comm = c;
    o.call = *call;
    o.is_in_flight = 0;
    status = hbm_prepare(&o);
    if (!status) {
        hbm_append(&o);
        status = hbm_complete(&o);
        if (status == HBM_PENDING) {
            status = HBM_INTERRUPTED;
            hbm_blame(c, status, c->rank);
            hbm_progress(c); /* removes it from the queue */
        }
    }
    hbm_leave_call(c);
    return status;
}

int hbm_run_plan(uintptr_t plan)
{
    const hbm_plan *p = (const hbm_plan *)plan;
    return p ? hbm_run(p->comm, p->call) : HBM_UNREADABLE;
}

/* Chooses the algorithm of an operation from what all ranks know when they call it. Where that does
   not suffice, agreed.c chooses again later.

   docs/transport.md has these choices in a table. All ranks choose the same: the choice depends on
   the operation, its length, the tuning and the machine alone. A rank posts what its own arrays
   allow as its offer (rendezvous.c). It reads no words of other ranks, so it needs no ordering. */
/* Bytes that an operation accesses, all ranks together. */
static uint64_t footprint(const hbm_operation *o)
{
    uint64_t n = (uint64_t)o->comm->size;
    switch (o->call.operation) {
    case HBM_BCAST:
        return n * o->block;
    case HBM_GATHER:
    case HBM_SCATTER:
    case HBM_ALLREDUCE:
        return 2 * n * o->block;
    case HBM_REDUCE:
        return (n + 1) * o->block;
    case HBM_ALLTOALL:
        return 2 * n * n * o->block;
    default:
        return (n + 1) * n * o->block;
    }
}

static int is_eager(const hbm_operation *o) { return o->block <= eager_bytes(o); }

/* Whether each rank reduces whole messages: those of all ranks, or of all below it in the tree. */
static int reduces_whole(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    return o->block * (uint64_t)c->size <= c->tuning.fold_bytes
           && hbm_eager_room(c, o->block) <= SLOT_BYTES;
}

/* Each rank reads the messages of all ranks before it: of many ranks, short ones alone. */
static int scans_whole(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int few = c->size <= FEW_TO_SCAN || c->oversubscribed;
    return o->block <= c->tuning.short_bytes && (few || o->block <= MOST_TO_SCAN);
}

static advance path_of_allgather(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    if (is_eager(o))
        return c->groups.grid.count > 1 && c->size > 2
                       && hbm_grid_room(c, o->block) <= SLOT_BYTES
                   ? hbm_allgather_grid : hbm_exchange;
    return c->groups.nodes.count > 1 ? hbm_allgather_agreed : hbm_exchange;
}

static int travels_in_posts(advance path)
{
    return path == hbm_barrier_path || path == hbm_bcast_eager || path == hbm_reduce_eager
           || path == hbm_allreduce_eager || path == hbm_scan_eager || path == hbm_allgather_grid;
}

static advance path_of(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    if (o->call.operation == HBM_BARRIER || o->call.operation >= HBM_FOREIGN)
        return hbm_barrier_path;
    if (c->size == 1)
        return hbm_single_rank;
    switch (o->call.operation) {
    case HBM_BCAST:
        return is_eager(o) ? hbm_bcast_eager : hbm_broadcast;
    case HBM_ALLGATHER:
        return path_of_allgather(o);
    case HBM_REDUCE:
        return reduces_whole(o) ? hbm_reduce_eager : hbm_reduce_agreed;
    case HBM_ALLREDUCE:
        return reduces_whole(o) ? hbm_allreduce_eager : hbm_reduce_agreed;
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE_SCATTER:
        return hbm_reduce_scatter;
    case HBM_SCAN:
    case HBM_EXSCAN:
        return scans_whole(o) ? hbm_scan_eager : hbm_scan;
    default:
        return hbm_exchange;
    }
}

advance hbm_path(hbm_operation *o)
{
    o->streaming = !is_eager(o) && footprint(o) > o->comm->tuning.stream_bytes;
    o->in_turn = !is_eager(o) && footprint(o) <= TURN_MOST && !o->streaming;
    advance path = path_of(o);
    o->reads_memory = !travels_in_posts(path); /* exchange.c sets it again */
    return path;
}
