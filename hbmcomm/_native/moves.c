/* Broadcast, gather, scatter, allgather, alltoall of messages that do not fit a slot.

   Where the ranks can reach each other's arrays (they lie in the arena) each byte is copied once,
   from input to output, and the copying is shared out evenly. Else the inputs pass through the
   owners' staging buffers in pieces that stay in the cache, copied in by one rank while others
   copy out the piece before.

   Every rank takes the same steps in an operation: one where it copies directly, one per piece
   where it stages. A piece's buffer is filled again once all readers of it have taken a later
   step. Staging buffers are free at the start of an operation, because all ranks have entered it
   and so have left the one before. */
#include "core.h"

#define PIECE (128 * 1024)
#define DEPTH 4

typedef struct {
    hbm_comm *c;
    const hbm_call *call;
    uint64_t block, base;
    int streaming;
} move;

static const slot *word_of(const move *m, int rank)
{
    return slot_of(m->c->ranks[rank], m->c->sequence);
}

/* Where this rank finds another's input or output, NULL where it cannot reach it. */
static char *input_of(const move *m, int rank)
{
    uint64_t offset = word_of(m, rank)->send;
    if (rank == m->c->rank)
        return (char *)m->call->send;
    return offset ? (char *)m->c->segments[rank] + offset : NULL;
}

static char *output_of(const move *m, int rank)
{
    uint64_t offset = word_of(m, rank)->recv;
    if (rank == m->c->rank)
        return (char *)m->call->recv;
    return offset ? (char *)m->c->segments[rank] + offset : NULL;
}

static int all_inputs_shared(const move *m)
{
    for (int r = 0; r < m->c->size; r++)
        if (!word_of(m, r)->send)
            return 0;
    return 1;
}

static int all_outputs_shared(const move *m)
{
    for (int r = 0; r < m->c->size; r++)
        if (!word_of(m, r)->recv)
            return 0;
    return 1;
}

/* Copies from one rank's memory to another's; at least one of them is this rank's. */
static void carry(const move *m, void *to, int to_rank, const void *from, int from_rank,
                  uint64_t bytes)
{
    (m->streaming ? hbm_stream : hbm_copy)(to, from, bytes);
    if (m->c->nodes[to_rank] != m->c->nodes[from_rank])
        m->c->link_bytes += bytes;
}

static int wait_step(const move *m, int rank, uint64_t steps)
{
    return rank == m->c->rank ? HBM_OK : hbm_await_step(m->c, rank, m->base + steps);
}

static int wait_all(const move *m, uint64_t steps)
{
    int status = HBM_OK;
    for (int r = 0; r < m->c->size && !status; r++)
        status = wait_step(m, r, steps);
    return status;
}

static void step(const move *m)
{
    if (m->streaming)
        hbm_stream_end();
    hbm_step(m->c);
}

/* The ranks after this one first, so that not all read from the same. */
static int next_of(const move *m, int i) { return (m->c->rank + i) % m->c->size; }

/* ---- staged: the producers' pieces pass through their staging buffers ---- */

typedef struct {
    int slices;                 /* blocks that a producer gives: one, or one for each rank */
    int root_gives, root_takes; /* only the root does; else all do */
} pattern;

static char *staged(const move *m, const pattern *p, int rank, uint64_t piece, int slice,
                    uint64_t room)
{
    uint64_t place = piece % DEPTH * (uint64_t)p->slices + (uint64_t)slice;
    return (char *)staging_of(m->c, rank) + place * room;
}

static int gives(const move *m, const pattern *p, int rank)
{
    return !p->root_gives || rank == m->call->root;
}

static int takes(const move *m, const pattern *p, int rank)
{
    return !p->root_takes || rank == m->call->root;
}

static int produce(const move *m, const pattern *p, uint64_t piece, uint64_t at, uint64_t bytes,
                   uint64_t room)
{
    hbm_comm *c = m->c;
    if (!gives(m, p, c->rank))
        return HBM_OK;
    /* Readers of the piece that lay here before have taken the step after it. */
    for (int r = 0; piece >= DEPTH && r < c->size; r++) {
        int status = takes(m, p, r) ? wait_step(m, r, 2 * (piece - DEPTH) + 2) : HBM_OK;
        if (status)
            return status;
    }
    for (int s = 0; s < p->slices; s++)
        if (p->slices == 1 || s != c->rank)
            hbm_copy(staged(m, p, c->rank, piece, s, room),
                     (char *)m->call->send + (uint64_t)s * m->block + at, bytes);
    return HBM_OK;
}

static int consume(const move *m, const pattern *p, uint64_t piece, uint64_t at, uint64_t bytes,
                   uint64_t room)
{
    hbm_comm *c = m->c;
    if (!takes(m, p, c->rank))
        return HBM_OK;
    for (int i = 0; i < c->size; i++) {
        int r = next_of(m, i);
        if (!gives(m, p, r))
            continue;
        char *to = (char *)m->call->recv + at;
        if (!p->root_gives)
            to += (uint64_t)r * m->block;
        if (r == c->rank) {
            const char *from = (char *)m->call->send + at;
            if (p->slices > 1)
                from += (uint64_t)r * m->block;
            hbm_copy(to, from, bytes);
            continue;
        }
        int status = wait_step(m, r, 2 * piece + 1);
        if (status)
            return status;
        carry(m, to, c->rank, staged(m, p, r, piece, p->slices > 1 ? c->rank : 0, room), r, bytes);
    }
    return HBM_OK;
}

/* Two steps per piece: it is produced, it is consumed. */
static int stage(const move *m, const pattern *p)
{
    uint64_t room = STAGING_BYTES / DEPTH / (uint64_t)p->slices;
    room = (room < PIECE ? room : PIECE) / LINE * LINE;
    uint64_t pieces = (m->block + room - 1) / room;
    for (uint64_t piece = 0; piece < pieces; piece++) {
        uint64_t at = piece * room, bytes = m->block - at < room ? m->block - at : room;
        int status = produce(m, p, piece, at, bytes, room);
        if (status)
            return status;
        step(m);
        status = consume(m, p, piece, at, bytes, room);
        if (status)
            return status;
        step(m);
    }
    return HBM_OK;
}

/* ---- direct: from input to output ---- */

/* Each leaf copies most of its output, the root the rest of all outputs: the same for everyone. */
static int broadcast(const move *m)
{
    hbm_comm *c = m->c;
    int root = m->call->root, shared = all_outputs_shared(m);
    char *from = input_of(m, root);
    uint64_t pulled = shared ? m->block - m->block / (uint64_t)c->size / LINE * LINE : m->block;
    if (c->rank != root) {
        carry(m, (void *)m->call->recv, c->rank, from, root, pulled);
        step(m);
        return pulled < m->block ? wait_step(m, root, 1) : HBM_OK;
    }
    for (int r = 0; r < c->size && pulled < m->block; r++)
        if (r != root)
            carry(m, output_of(m, r) + pulled, r, from + pulled, root, m->block - pulled);
    step(m);
    return wait_all(m, 1);
}

/* Every rank puts its own block where it belongs. */
static int push_to_root(const move *m)
{
    hbm_comm *c = m->c;
    int root = m->call->root;
    carry(m, output_of(m, root) + (uint64_t)c->rank * m->block, root, (void *)m->call->send,
          c->rank, m->block);
    step(m);
    return c->rank == root ? wait_all(m, 1) : HBM_OK;
}

/* Every rank that takes fetches its blocks from those that give. */
static int pull(const move *m, const pattern *p)
{
    hbm_comm *c = m->c;
    for (int i = 0; i < c->size && takes(m, p, c->rank); i++) {
        int r = next_of(m, i);
        if (!gives(m, p, r))
            continue;
        char *to = (char *)m->call->recv + (p->root_gives ? 0 : (uint64_t)r * m->block);
        const char *from = input_of(m, r) + (p->slices > 1 ? (uint64_t)c->rank * m->block : 0);
        carry(m, to, c->rank, from, r, m->block);
    }
    step(m);
    for (int r = 0; r < c->size && gives(m, p, c->rank); r++) {
        int status = takes(m, p, r) ? wait_step(m, r, 1) : HBM_OK;
        if (status)
            return status;
    }
    return HBM_OK;
}

static uint64_t footprint(const move *m)
{
    uint64_t n = (uint64_t)m->c->size;
    switch (m->call->operation) {
    case HBM_BCAST:
        return n * m->block;
    case HBM_GATHER:
    case HBM_SCATTER:
        return 2 * n * m->block;
    case HBM_ALLGATHER:
        return (n + n * n) * m->block;
    default:
        return 2 * n * n * m->block;
    }
}

int hbm_move(hbm_comm *c, const hbm_call *call)
{
    move m = {.c = c, .call = call, .block = bytes_of(call), .base = c->steps};
    int each = call->operation == HBM_SCATTER || call->operation == HBM_ALLTOALL;
    pattern p = {.slices = each ? c->size : 1,
                 .root_gives = call->operation == HBM_BCAST || call->operation == HBM_SCATTER,
                 .root_takes = call->operation == HBM_GATHER};
    m.streaming = footprint(&m) > c->cache_bytes;
    int reachable = p.root_gives ? word_of(&m, call->root)->send != 0 : all_inputs_shared(&m);
    if (p.root_takes && word_of(&m, call->root)->recv)
        return push_to_root(&m);
    if (!reachable)
        return stage(&m, &p);
    return call->operation == HBM_BCAST ? broadcast(&m) : pull(&m, &p);
}
