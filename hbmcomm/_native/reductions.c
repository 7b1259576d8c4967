/* Reduce, allreduce, reduce-scatter of messages that do not fit a slot.

   Every rank reduces its own slice of all inputs, in the order of the ranks. Where the ranks can
   reach each other's arrays the slice goes straight into all outputs; else inputs and results pass
   through staging buffers in pieces that stay in the cache. The steps are those of moves.c. */
#include "core.h"

#define PIECE (256 * 1024)
#define DEPTH 2

typedef struct {
    hbm_comm *c;
    const hbm_call *call;
    uint64_t base, size; /* size: bytes of one entry */
    int streaming;
} reduction;

static const slot *word_of(const reduction *f, int rank)
{
    return slot_of(f->c->ranks[rank], f->c->sequence);
}

static int wait_all(const reduction *f, uint64_t steps)
{
    int status = HBM_OK;
    for (int r = 0; r < f->c->size && !status; r++)
        if (r != f->c->rank)
            status = hbm_await_step(f->c, r, f->base + steps);
    return status;
}

static void step(const reduction *f)
{
    if (f->streaming)
        hbm_stream_end();
    hbm_step(f->c);
}

static int has_output(const reduction *f, int rank)
{
    return f->call->operation != HBM_REDUCE || rank == f->call->root;
}

/* The entries of `n` that a rank reduces: whole cache lines, the rest to the last. */
static void slice_of(const reduction *f, int rank, uint64_t n, uint64_t *from, uint64_t *to)
{
    uint64_t grain = f->size < LINE ? LINE / f->size : 1;
    uint64_t each = n / (uint64_t)f->c->size / grain * grain;
    *from = (uint64_t)rank * each;
    *to = rank == f->c->size - 1 ? n : *from + each;
}

static int inputs_shared(const reduction *f)
{
    for (int r = 0; r < f->c->size; r++)
        if (!word_of(f, r)->send && f->c->size > 1)
            return 0;
    return 1;
}

static int outputs_shared(const reduction *f)
{
    for (int r = 0; r < f->c->size; r++)
        if (has_output(f, r) && !word_of(f, r)->recv && f->c->size > 1)
            return 0;
    return 1;
}

static void count_links(const reduction *f, uint64_t bytes, int outs)
{
    for (int r = 0; r < f->c->size; r++)
        if (f->c->nodes[r] != f->c->nodes[f->c->rank])
            f->c->link_bytes += bytes * (1 + (uint64_t)(outs && has_output(f, r)));
}

/* ---- direct ---- */

static int reduce_directly(const reduction *f)
{
    hbm_comm *c = f->c;
    int outs = 0, scatter = f->call->operation == HBM_REDUCE_SCATTER_BLOCK;
    uint64_t from = 0, to = f->call->count, block = scatter ? to * (uint64_t)c->rank * f->size : 0;
    for (int r = 0; r < c->size; r++) {
        const slot *word = word_of(f, r);
        c->in[r] = (r == c->rank ? (char *)f->call->send : (char *)c->segments[r] + word->send)
                   + block;
        if (scatter ? r == c->rank : has_output(f, r))
            c->out[outs++] = r == c->rank ? (char *)f->call->recv
                                          : (char *)c->segments[r] + word->recv;
    }
    if (!scatter)
        slice_of(f, c->rank, f->call->count, &from, &to);
    hbm_combine(f->call, c->in, c->size, c->out, outs, from, to - from, f->streaming);
    count_links(f, (to - from) * f->size, !scatter);
    step(f);
    return wait_all(f, 1);
}

/* ---- staged ---- */

static char *staged_input(const reduction *f, int rank, uint64_t piece)
{
    return (char *)staging_of(f->c, rank) + piece % DEPTH * PIECE;
}

static char *staged_result(const reduction *f, int rank, uint64_t piece)
{
    return staged_input(f, rank, piece) + DEPTH * PIECE;
}

typedef struct {
    uint64_t number, at, n; /* the piece's first entry, and how many it has */
} piece;

static piece piece_of(const reduction *f, uint64_t number, uint64_t room)
{
    piece p = {number, number * room, 0};
    p.n = p.at >= f->call->count ? 0 : f->call->count - p.at < room ? f->call->count - p.at : room;
    return p;
}

/* Copies in what others will reduce: all but the own slice. */
static void copy_in(const reduction *f, piece p)
{
    uint64_t from, to;
    slice_of(f, f->c->rank, p.n, &from, &to);
    const char *input = (const char *)f->call->send + p.at * f->size;
    char *place = staged_input(f, f->c->rank, p.number);
    hbm_copy(place, input, from * f->size);
    hbm_copy(place + to * f->size, input + to * f->size, (p.n - to) * f->size);
}

static void reduce_slice(const reduction *f, piece p)
{
    hbm_comm *c = f->c;
    uint64_t from, to;
    int outs = 0;
    slice_of(f, c->rank, p.n, &from, &to);
    for (int r = 0; r < c->size; r++)
        c->in[r] = r == c->rank ? (const char *)f->call->send + p.at * f->size
                                : staged_input(f, r, p.number);
    c->out[outs++] = staged_result(f, c->rank, p.number);
    if (has_output(f, c->rank))
        c->out[outs++] = (char *)f->call->recv + p.at * f->size;
    hbm_combine(f->call, c->in, c->size, c->out, outs, from, to - from, 0);
    count_links(f, (to - from) * f->size, 0);
}

static void copy_out(const reduction *f, piece p)
{
    hbm_comm *c = f->c;
    uint64_t from, to;
    char *output = (char *)f->call->recv + p.at * f->size;
    for (int i = 1; i < c->size && has_output(f, c->rank); i++) {
        int r = (c->rank + i) % c->size;
        slice_of(f, r, p.n, &from, &to);
        (f->streaming ? hbm_stream : hbm_copy)(
            output + from * f->size, staged_result(f, r, p.number) + from * f->size,
            (to - from) * f->size);
        if (c->nodes[r] != c->nodes[c->rank])
            c->link_bytes += (to - from) * f->size;
    }
}

/* Two steps per piece: it is copied in, its slices are reduced. The next piece is copied in before
   this one's results are waited for. Reusing a buffer is safe with two of each: whoever has taken
   the step after a piece has read all of the piece before it. */
static int reduce_staged(const reduction *f)
{
    uint64_t room = PIECE / f->size, pieces = (f->call->count + room - 1) / room;
    copy_in(f, piece_of(f, 0, room));
    step(f);
    for (uint64_t k = 0; k < pieces; k++) {
        int status = wait_all(f, 2 * k + 1);
        if (status)
            return status;
        reduce_slice(f, piece_of(f, k, room));
        step(f);
        copy_in(f, piece_of(f, k + 1, room));
        step(f);
        status = wait_all(f, 2 * k + 2);
        if (status)
            return status;
        copy_out(f, piece_of(f, k, room));
    }
    if (f->streaming)
        hbm_stream_end();
    return HBM_OK;
}

/* Reduce-scatter: every rank's block of all inputs, staged slice by slice for those who need it. */
static int scatter_staged(const reduction *f)
{
    hbm_comm *c = f->c;
    uint64_t n = (uint64_t)c->size, room = STAGING_BYTES / DEPTH / n / LINE * LINE;
    room = (room < PIECE ? room : PIECE) / f->size;
    uint64_t pieces = (f->call->count + room - 1) / room;
    for (uint64_t k = 0; k < pieces; k++) {
        piece p = piece_of(f, k, room);
        for (int r = 0; r < c->size; r++)
            if (r != c->rank)
                hbm_copy(staging_of(c, c->rank) + (k % DEPTH * n + (uint64_t)r) * room * f->size,
                         (const char *)f->call->send
                             + ((uint64_t)r * f->call->count + p.at) * f->size,
                         p.n * f->size);
        step(f);
        int status = wait_all(f, k + 1);
        if (status)
            return status;
        for (int r = 0; r < c->size; r++)
            c->in[r] = r == c->rank
                           ? (const char *)f->call->send
                                 + ((uint64_t)r * f->call->count + p.at) * f->size
                           : (const char *)staging_of(c, r)
                                 + (k % DEPTH * n + (uint64_t)c->rank) * room * f->size;
        c->out[0] = (char *)f->call->recv + p.at * f->size;
        hbm_combine(f->call, c->in, c->size, c->out, 1, 0, p.n, 0);
        count_links(f, p.n * f->size, 0);
    }
    return HBM_OK;
}

static uint64_t footprint(const reduction *f)
{
    uint64_t n = (uint64_t)f->c->size, bytes = bytes_of(f->call);
    switch (f->call->operation) {
    case HBM_REDUCE:
        return (n + 1) * bytes;
    case HBM_ALLREDUCE:
        return 2 * n * bytes;
    default:
        return (n * n + n) * bytes;
    }
}

int hbm_reduce(hbm_comm *c, const hbm_call *call)
{
    reduction f = {.c = c, .call = call, .base = c->steps, .size = hbm_dtype_size(call->dtype)};
    f.streaming = footprint(&f) > c->cache_bytes;
    int scatter = call->operation == HBM_REDUCE_SCATTER_BLOCK;
    if (inputs_shared(&f) && (scatter || outputs_shared(&f)))
        return reduce_directly(&f);
    return scatter ? scatter_staged(&f) : reduce_staged(&f);
}
