/* Reductions and allgather over several NUMA nodes, all arrays in the arena: what ranks of a node have
   in common crosses to another node once.

   The result is cut into one segment for each rank. First the ranks of a node fold their node's
   inputs, each the segments whose turn is its own; then each rank folds its segment of all nodes'
   partial results; then, where all want the whole, segments are fetched from other nodes in turn,
   and the rest copied from mates. The order of folding: ranks of a node, then nodes.

   Partial results of an allreduce are put where the result will be; those of other reductions go to
   staging buffers, a piece of each segment at a time. */
#include "slices.h"
#include "paths.h"

enum { BEGINNING, FOLDING, JOINING, ENDING_PIECE, FETCHING, COPYING, ENDING };

static const hbm_parts *nodes(const hbm_operation *o) { return &o->comm->groups.nodes; }

static int node_of(const hbm_operation *o, int rank) { return nodes(o)->of[rank]; }

/* The number of a rank if those of one node had numbers next to each other. */
static int by_place(const hbm_operation *o, int rank)
{
    return nodes(o)->first[node_of(o, rank)] + nodes(o)->number[rank];
}

/* Which rank of a node has to do with the segment of a rank. */
static int turn_of(const hbm_operation *o, int node, int rank)
{
    return part_member(nodes(o), node, by_place(o, rank) % part_size(nodes(o), node));
}

static int is_allreduce(const hbm_operation *o) { return o->call.operation == HBM_ALLREDUCE; }

/* The segment of a rank, as bytes of what is sent, and in what is received. */
static hbm_part segment_of(const hbm_operation *o, int rank)
{
    if (gives_to_each(o))
        return part_for(o, rank);
    if (o->call.operation == HBM_ALLGATHER)
        return part_from(o, rank);
    slice s = slice_of(o, o->block, rank, o->comm->size);
    return (hbm_part){s.from, s.to - s.from};
}

/* The part of a segment that this piece has. */
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

/* Where in its staging buffers a rank keeps the partial result of a segment. */
static uint64_t staged_at(const hbm_operation *o, int node, int rank)
{
    return (uint64_t)(by_place(o, rank) / part_size(nodes(o), node)) * o->room;
}

static int find(hbm_operation *o, int rank, hbm_part part, char **send, char **recv)
{
    uint64_t send_at, recv_at;
    int status = hbm_find_arrays(o, rank, &send_at, &recv_at);
    if (status)
        return status;
    if (send)
        *send = hbm_array(o, rank, send_at, part.offset, part.bytes);
    if (recv)
        *recv = hbm_array(o, rank, recv_at, part.offset, part.bytes);
    return (send && !*send) || (recv && !*recv) ? o->comm->failure.status : HBM_OK;
}

/* ---- reducing ---- */

static void begin_pieces(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    uint64_t longest = 0, most = 0;
    for (int n = 0; n < nodes(o)->count; n++) {
        uint64_t m = (uint64_t)part_size(nodes(o), n), segments = ((uint64_t)c->size + m - 1) / m;
        most = segments > most ? segments : most;
    }
    for (int r = 0; r < c->size; r++)
        longest = segment_of(o, r).bytes > longest ? segment_of(o, r).bytes : longest;
    uint64_t grain = LINE * entry_bytes(&o->call);
    o->room = is_allreduce(o) ? longest + 1 : STAGING_BYTES / most / grain * grain;
    o->pieces = (longest + o->room - 1) / o->room;
}

/* The segments of which this rank folds its node's inputs. */
static int fold_node(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int node = node_of(o, c->rank), ins = part_size(nodes(o), node);
    for (int r = 0; r < c->size; r++) {
        hbm_part part = piece_of(o, r);
        if (turn_of(o, node, r) != c->rank || !part.bytes)
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
        int status = fold_into(o, ins, &out, 1, 0, part.bytes, IN_ORDER);
        if (status)
            return status;
    }
    return HBM_OK;
}

/* The own segment, of all nodes. */
static int join_nodes(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    int root = o->call.root, to_root = o->call.operation == HBM_REDUCE;
    hbm_part part = piece_of(o, c->rank);
    char *output = NULL;
    if (!part.bytes)
        return HBM_OK;
    for (int n = 0; n < nodes(o)->count; n++) {
        int rank = turn_of(o, n, c->rank), status = HBM_OK;
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
        status = fold_into(o, nodes(o)->count, &out, 1, 0, part.bytes, IN_ORDER);
    return status;
}

/* ---- handing out ---- */

/* A segment from the rank that has it: of an allgather, the one that sent it. */
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
        int mine = node_of(o, r) == node ? r == c->rank : turn_of(o, node, r) == c->rank;
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

/* What a mate has: its own segment, and those that it fetched. */
static int copy_from_mate(hbm_operation *o, int mate)
{
    int node = node_of(o, mate);
    for (int i = 0; i < o->comm->size; i++) {
        int r = next_of(o, i);
        if (node_of(o, r) == node ? r != mate : turn_of(o, node, r) != mate)
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
    default: /* nobody leaves while others read its array */
        return hbm_sync(o, LAST_STEP);
    }
}

int hbm_reduce_by_nodes(hbm_operation *o)
{
    int status = HBM_OK;
    if (o->stage == BEGINNING) {
        status = is_allreduce(o) ? HBM_OK : hbm_has_staging(o);
        if (status)
            return status;
        begin_pieces(o);
        o->stage = FOLDING;
    }
    for (; o->piece < o->pieces; o->piece++, o->stage = FOLDING) {
        if (o->stage == FOLDING) {
            status = fold_node(o);
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
