/* Reductions and allgather over several NUMA nodes, with all arrays in the arena. Data that several
   ranks of a node need crosses to that node once.

   The result is cut into one segment for each rank. First the ranks of a node reduce their node's
   inputs; each does its share of the segments. Then each rank reduces its own segment of all nodes'
   partial results. Last, where all ranks receive the whole, each fetches its share of the segments
   from other nodes, and copies the rest from mates. The order of operands: ranks of a node, then
   nodes.

   Partial results of an allreduce go into the array of the result; those of other reductions go
   into staging buffers, a piece of each segment at a time.

   Ordering: hbm_sync() separates the steps of a reduction, and makes each step's stores visible to
   the next one. `ready` is stored with release after a rank has fetched its share of the segments,
   and streaming stores are fenced before that; mates load it with acquire.

   Model: algorithms/passing.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "comm/bell.h"
#include "algorithms/blocks.h"
#include "algorithms/rendezvous.h"
#include "algorithms/slices.h"

enum { BEGINNING, REDUCING, JOINING, ENDING_PIECE, FETCHING, COPYING, ENDING };

static const hbm_parts *nodes(const hbm_operation *o) { return &o->comm->groups.nodes; }

static int node_of(const hbm_operation *o, int rank) { return nodes(o)->of[rank]; }

/* A rank's number if ranks were numbered node by node. */
static int number_by_node(const hbm_operation *o, int rank)
{
    return nodes(o)->first[node_of(o, rank)] + nodes(o)->number[rank];
}

/* The rank of a node that is responsible for the segment of a rank. */
static int keeper_of(const hbm_operation *o, int node, int rank)
{
    return part_member(nodes(o), node, number_by_node(o, rank) % part_size(nodes(o), node));
}

static int is_allreduce(const hbm_operation *o) { return o->call.operation == HBM_ALLREDUCE; }

/* The segment of a rank: its bytes in the send buffer, and in the receive buffer. */
static hbm_part segment_of(const hbm_operation *o, int rank)
{
    if (sends_to_each(&o->call))
        return part_for(o, rank);
    if (o->call.operation == HBM_ALLGATHER)
        return part_from(o, rank);
    slice s = slice_of(o, o->block, rank, o->comm->size);
    return (hbm_part){s.from, s.to - s.from};
}

/* The current piece of a segment. */
static hbm_part piece_of(const hbm_operation *o, int rank)
{
    hbm_part s = segment_of(o, rank);
    uint64_t at = o->piece * o->room;
    uint64_t bytes = s.bytes <= at ? 0 : s.bytes - at < o->room ? s.bytes - at : o->room;
    return (hbm_part){s.offset + at, bytes};
}

static void *own_staged(const hbm_operation *o, uint64_t offset)
{
    return o->comm->peers[o->comm->rank].ordinary + o->comm->staging + offset;
}

/* The offset in staging buffers of the partial result of a segment. */
static uint64_t staged_at(const hbm_operation *o, int node, int rank)
{
    return (uint64_t)(number_by_node(o, rank) / part_size(nodes(o), node)) * o->room;
}

static int find(hbm_operation *o, int rank, hbm_part part, char **send, char **recv)
{
    uint64_t send_at, recv_at;
    int status = find_arrays(o, rank, &send_at, &recv_at);
    if (status)
        return status;
    if (send)
        *send = hbm_array(o, rank, send_at, part.offset, part.bytes);
    if (recv)
        *recv = hbm_array(o, rank, recv_at, part.offset, part.bytes);
    return (send && !*send) || (recv && !*recv) ? o->comm->failure.status : HBM_OK;
}

/* ---- reducing ---- */

static uint64_t longest_segment(const hbm_operation *o)
{
    uint64_t longest = 0;
    for (int r = 0; r < o->comm->size; r++)
        longest = segment_of(o, r).bytes > longest ? segment_of(o, r).bytes : longest;
    return longest;
}

/* The length of the pieces: all of a segment, or what fits in staging buffers. */
static uint64_t room_of(const hbm_operation *o, uint64_t longest)
{
    uint64_t most = 0, grain = LINE * entry_bytes(&o->call);
    if (is_allreduce(o))
        return longest + 1;
    for (int n = 0; n < nodes(o)->count; n++) {
        uint64_t ranks = (uint64_t)o->comm->size, m = (uint64_t)part_size(nodes(o), n);
        uint64_t segments = (ranks + m - 1) / m;
        most = segments > most ? segments : most;
    }
    return STAGING_BYTES / most / grain * grain;
}

int hbm_nodes_have_room(const hbm_operation *o)
{
    uint64_t longest = longest_segment(o), room = room_of(o, longest);
    return room && longest / room < MOST_PIECES;
}

static void begin_pieces(hbm_operation *o)
{
    uint64_t longest = longest_segment(o);
    o->room = room_of(o, longest);
    o->pieces = (longest + o->room - 1) / o->room;
}

/* Reduces the inputs of this rank's node, for its share of the segments. */
static int reduce_node(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int node = node_of(o, c->rank), ins = part_size(nodes(o), node);
    for (int r = 0; r < c->size; r++) {
        hbm_part part = piece_of(o, r);
        if (keeper_of(o, node, r) != c->rank || !part.bytes)
            continue;
        for (int i = 0; i < ins; i++) {
            char *input;
            int status = find(o, part_member(nodes(o), node, i), part, &input, NULL);
            if (status)
                return status;
            c->in[i] = input;
        }
        void *out = is_allreduce(o) ? (char *)o->call.recv + part.offset
                                    : own_staged(o, staged_at(o, node, r));
        int status = reduce_into(o, ins, &out, 1, 0, part.bytes, IN_ORDER);
        if (status)
            return status;
    }
    return HBM_OK;
}

/* Reduces the partial results of all nodes, for this rank's segment. */
static int join_nodes(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int root = o->call.root, to_root = o->call.operation == HBM_REDUCE;
    hbm_part part = piece_of(o, c->rank);
    char *output = NULL;
    if (!part.bytes)
        return HBM_OK;
    for (int n = 0; n < nodes(o)->count; n++) {
        int rank = keeper_of(o, n, c->rank), status = HBM_OK;
        char *partial;
        if (is_allreduce(o))
            status = find(o, rank, part, NULL, &partial);
        else
            partial = hbm_staged(o, rank, staged_at(o, n, c->rank), part.bytes);
        if (status || !partial)
            return c->failure.status;
        c->in[n] = partial;
        count_from(c, rank, part.bytes);
    }
    int status = HBM_OK;
    if (to_root) {
        status = find(o, root, part, NULL, &output);
        count_to(c, root, part.bytes);
    } else {
        output = (char *)o->call.recv + (is_allreduce(o) ? part.offset : o->piece * o->room);
    }
    void *out = output;
    if (!status)
        status = reduce_into(o, nodes(o)->count, &out, 1, 0, part.bytes, IN_ORDER);
    return status;
}

/* ---- distributing ---- */

/* Copies a segment from a rank that has it; in an allgather that may be its sender. */
static int copy_segment(hbm_operation *o, int rank, int from)
{
    hbm_part part = segment_of(o, rank);
    char *source;
    if (!part.bytes)
        return HBM_OK;
    int sends = rank == from && o->call.operation == HBM_ALLGATHER;
    hbm_part there = sends ? (hbm_part){0, part.bytes} : part;
    int status = find(o, from, there, sends ? &source : NULL, sends ? NULL : &source);
    if (status)
        return status;
    copy_from(o, (char *)o->call.recv + part.offset, source, part.bytes);
    count_from(o->comm, from, part.bytes);
    return HBM_OK;
}

static int fetch(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int node = node_of(o, c->rank);
    for (int i = 0; i < c->size; i++) {
        int r = next_of(o, i);
        int mine = node_of(o, r) == node ? r == c->rank : keeper_of(o, node, r) == c->rank;
        if (r == c->rank && is_allreduce(o))
            continue;
        int status = mine ? copy_segment(o, r, r) : HBM_OK;
        if (status)
            return status;
    }
    if (o->streaming)
        hbm_stream_end();
    signal_step(o, &o->comm->own->ready, 1);
    hbm_ring(o->comm);
    return HBM_OK;
}

/* Copies all that a mate has: its own segment, and those that it fetched. */
static int copy_from_mate(hbm_operation *o, int mate)
{
    int node = node_of(o, mate);
    for (int i = 0; i < o->comm->size; i++) {
        int r = next_of(o, i);
        if (node_of(o, r) == node ? r != mate : keeper_of(o, node, r) != mate)
            continue;
        int status = copy_segment(o, r, mate);
        if (status)
            return status;
    }
    return HBM_OK;
}

static int copy_from_mates(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int node = node_of(o, c->rank), mates = part_size(nodes(o), node);
    for (; o->peer < mates; o->peer++) {
        int mate = part_member(nodes(o), node, (nodes(o)->number[c->rank] + o->peer) % mates);
        if (mate == c->rank)
            continue;
        if (!reached(o, mate, &c->peers[mate].control->ready, at_step(o, 1)))
            return HBM_PENDING;
        int status = copy_from_mate(o, mate);
        if (status)
            return status;
    }
    o->peer = 0;
    if (o->streaming)
        hbm_stream_end();
    return HBM_OK;
}

/* ---- the whole ---- */

int hbm_allgather_by_nodes(hbm_operation *o)
{
    int status = HBM_OK;
    switch (o->stage) {
    case BEGINNING:
    case FETCHING:
        status = fetch(o);
        if (status)
            return status;
        o->stage = COPYING;
        /* fall through */
    case COPYING:
        status = copy_from_mates(o);
        if (status)
            return status;
        o->stage = ENDING;
        /* fall through */
    default: /* no rank leaves while others read its array */
        return hbm_sync(o, LAST_STEP);
    }
}

int hbm_reduce_by_nodes(hbm_operation *o)
{
    int status = HBM_OK;
    if (o->stage == BEGINNING) {
        status = is_allreduce(o) ? HBM_OK : hbm_allocate_staging(o, STAGING_BYTES);
        if (status)
            return status;
        begin_pieces(o);
        o->stage = REDUCING;
    }
    for (; o->piece < o->pieces; o->piece++, o->stage = REDUCING) {
        if (o->stage == REDUCING) {
            status = reduce_node(o);
            if (status)
                return status;
            o->stage = JOINING;
        }
        if (o->stage == JOINING) {
            status = hbm_sync(o, 2 * o->piece + 1);
            if (!status)
                status = join_nodes(o);
            if (status)
                return status;
            o->stage = ENDING_PIECE;
        }
        status = hbm_sync(o, 2 * o->piece + 2);
        if (status)
            return status;
    }
    if (!is_allreduce(o))
        return HBM_OK;
    o->stage = FETCHING;
    o->advance = hbm_allgather_by_nodes;
    return hbm_allgather_by_nodes(o);
}
