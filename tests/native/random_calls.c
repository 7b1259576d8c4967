/* Random sequences of all operations, each result compared with the reference.

   After every call a rank overwrites what it sent and received: whoever still read it, or still
   wrote to it, would be found out. */
#include "core_test.h"

#define GUARD 64
#define CALLS 120
#define STRETCH 20 /* calls, after which it is drawn anew how ranks may run ahead of each other */
#define MOST_BYTES (1280 * 1024)

typedef struct {
    hbm_call call;
    uint64_t seed;
    int sends_shared[MOST_RANKS], receives_shared[MOST_RANKS], in_place[MOST_RANKS];
    uint64_t skew[MOST_RANKS]; /* entries by which buffers are off a cache line */
    int late;                  /* a rank that sleeps before the call; -1: none */
} drawn;

/* Around the sizes at which the core takes another way. */
static uint64_t draw_bytes(dice *d, uint64_t size)
{
    static const uint64_t edges[] = {0, 64, 512, 2 << 10, 4 << 10, 8 << 10, 32 << 10, 128 << 10,
                                     256 << 10, 512 << 10, 1 << 20};
    uint64_t edge = edges[roll(d, roll(d, 3) ? 7 : sizeof edges / sizeof *edges)];
    if (roll(d, 3) == 0)
        edge /= size; /* the edge of those who give a block to each */
    uint64_t off = roll(d, 3) ? roll(d, 5) * 8 : roll(d, edge / 2 + 64);
    return roll(d, 2) ? edge + off : edge - (off < edge ? off : edge);
}

/* Calls from one rank to the others, or the other way, which no rank must meet all others in. */
static void draw_one_way(dice *d, uint64_t stretch, drawn *w)
{
    static const uint8_t ways[2][2] = {{HBM_BCAST, HBM_SCATTER}, {HBM_GATHER, HBM_REDUCE}};
    w->call.operation = ways[stretch >> 8 & 1][roll(d, 2)];
    w->call.root = (int32_t)(stretch >> 16 & 0xff);
}

static drawn draw(dice *d, int size, uint64_t stretch)
{
    drawn w = {.seed = mixed(d->state), .late = roll(d, 60) ? -1 : (int)roll(d, (uint64_t)size)};
    uint64_t bytes = draw_bytes(d, (uint64_t)size), most = MOST_BYTES;
    int fixed = (int)roll(d, 3); /* all in the arena, none, or any mixture */
    w.call.operation = (uint8_t)roll(d, HBM_FOREIGN + 1);
    w.call.root = (int32_t)roll(d, (uint64_t)size);
    if (stretch % 5 == 0) {
        draw_one_way(d, stretch, &w);
        w.call.root %= size;
        bytes %= 2048;
    }
    if (roll(d, 40) == 0) { /* more pieces than there are staging buffers */
        w.call.operation = HBM_BCAST;
        bytes = MOST_BYTES;
        fixed = 0;
    }
    if (w.call.operation != HBM_BCAST && w.call.operation != HBM_REDUCE
        && w.call.operation != HBM_ALLREDUCE)
        most /= (uint64_t)size;
    do {
        w.call.dtype = (uint8_t)roll(d, HBM_DTYPES);
        w.call.reduction = (uint8_t)roll(d, HBM_REDUCTIONS);
    } while (w.call.operation >= HBM_REDUCE && !hbm_reduces(w.call.dtype, w.call.reduction));
    w.call.count = (bytes < most ? bytes : most) / hbm_dtype_size(w.call.dtype);
    if (w.call.operation == HBM_BARRIER || w.call.operation >= HBM_FOREIGN)
        w.call = (hbm_call){.operation = w.call.operation};
    for (int r = 0; r < size; r++) {
        w.sends_shared[r] = fixed < 2 ? fixed : (int)roll(d, 2);
        w.receives_shared[r] = fixed < 2 ? fixed : (int)roll(d, 2);
        w.in_place[r] = roll(d, 3) == 0;
        w.skew[r] = roll(d, 2) ? 0 : roll(d, 9);
    }
    return w;
}

/* ---- one rank's buffers ---- */

typedef struct {
    unsigned char *at;
    void *own; /* what to free, NULL in the arena */
    uint64_t bytes;
} buffer;

static buffer new_buffer(unsigned char *place, int shared, uint64_t bytes, uint64_t skew)
{
    buffer b = {.bytes = bytes};
    if (shared) {
        b.at = place + GUARD + skew;
        memset(place, 0xA5, 2 * GUARD + skew + bytes);
    } else {
        b.own = malloc(skew + bytes + !(skew + bytes));
        CHECK(b.own, "no memory");
        b.at = (unsigned char *)b.own + skew;
    }
    memset(b.at, 0x5A, bytes);
    return b;
}

static void end_buffer(buffer b)
{
    for (int i = 1; !b.own && b.at && i <= GUARD; i++)
        CHECK(b.at[-i] == 0xA5 && b.at[b.bytes + (uint64_t)i - 1] == 0xA5,
              "written beyond an array in the arena");
    if (b.at)
        memset(b.at, 0xEE, b.bytes);
    free(b.own);
}

static int works_in_place(const hbm_call *call, int rank)
{
    switch (call->operation) {
    case HBM_BCAST:
    case HBM_ALLGATHER:
    case HBM_ALLREDUCE:
        return 1;
    case HBM_GATHER:
    case HBM_SCATTER:
    case HBM_REDUCE:
        return rank == call->root;
    default:
        return 0;
    }
}

/* ---- a call ---- */

static void check_one(const member *me, const drawn *w, int number, const buffer *send,
                      const hbm_call *call, int in_place)
{
    uint64_t size = hbm_dtype_size(call->dtype);
    uint64_t entries = blocks_received(call, me->g.size, me->rank) * call->count;
    uint64_t sent = blocks_sent(call, me->g.size, me->rank) * call->count;
    unsigned char *expected = malloc((entries > sent ? entries : sent) * size + 1);
    CHECK(expected, "no memory");
    expect_output(call, w->seed, me->g.size, me->rank, expected);
    CHECK(same_output(call, (void *)call->recv, expected, entries),
          "call %d on rank %d of %d%s: operation %d of %llu x dtype %d, reduction %d, root %d, "
          "%s in the arena, %s in it, %sin place: wrong result",
          number, me->rank, me->g.size, me->g.oversubscribed ? " (oversubscribed)" : "",
          call->operation, (unsigned long long)call->count, call->dtype, call->reduction,
          call->root, w->sends_shared[me->rank] ? "sent" : "sent not",
          w->receives_shared[me->rank] ? "received" : "received not", in_place ? "" : "not ");
    if (!in_place && sent) {
        fill_input(call, w->seed, me->g.size, me->rank, expected);
        CHECK(!memcmp(send->at, expected, sent * size), "call %d changed what it sent", number);
    }
    free(expected);
}

static void call_once(member *me, const drawn *w, int number, dice *own)
{
    hbm_call call = w->call;
    int r = me->rank, in_place = works_in_place(&call, r)
                                 && (w->in_place[r] || call.operation == HBM_BCAST);
    uint64_t size = hbm_dtype_size(call.dtype), block = call.count * size, skew = w->skew[r] * size;
    uint64_t sent = blocks_sent(&call, me->g.size, r) * block;
    uint64_t received = blocks_received(&call, me->g.size, r) * block;
    buffer send = {0}, recv = {0};
    uint64_t shift = call.operation == HBM_GATHER || call.operation == HBM_ALLGATHER
                             || call.operation == HBM_SCATTER ? block * (uint64_t)r : 0;
    if (in_place) {
        recv = new_buffer(me->heap, w->receives_shared[r], sent > received ? sent : received, skew);
        call.send = (uintptr_t)recv.at + (sent > received ? 0 : shift);
        call.recv = (uintptr_t)recv.at + (sent > received ? shift : 0);
    } else {
        if (sent)
            send = new_buffer(me->heap, w->sends_shared[r], sent, skew);
        if (received)
            recv = new_buffer(me->heap + HEAP_BYTES / 2, w->receives_shared[r], received, skew);
        call.send = (uintptr_t)send.at;
        call.recv = (uintptr_t)recv.at;
    }
    if (sent)
        fill_input(&call, w->seed, me->g.size, r, (void *)call.send);
    if (w->late == r)
        sleep_ms(2);
    for (volatile uint64_t burnt = roll(own, 4) ? 0 : roll(own, 20000); burnt; burnt--)
        ;
    int status = hbm_run(me->comm, &call);
    CHECK(status == HBM_OK, "call %d on rank %d gave status %d", number, r, status);
    if (call.operation < HBM_FOREIGN)
        check_one(me, w, number, &send, &call, in_place);
    end_buffer(send);
    end_buffer(recv);
}

static void body(member *me)
{
    dice common = {*(uint64_t *)me->shared}, own = {mixed(common.state + (uint64_t)me->rank)};
    uint64_t stretch = 1;
    for (int i = 0; i < CALLS; i++) {
        if (i % STRETCH == 0)
            stretch = mixed(common.state);
        drawn w = draw(&common, me->g.size, stretch);
        call_once(me, &w, i, &own);
    }
    hbm_call last = {.operation = HBM_BARRIER};
    CHECK(hbm_run(me->comm, &last) == HBM_OK, "the last barrier failed");
}

void test_random_calls(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < 4 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        group g = {.size = MOST_RANKS - (int)(round % MOST_RANKS), .oversubscribed = drawn_from & 1,
                   .two_nodes = drawn_from >> 3 & 1,
                   .cache_bytes = drawn_from & 2 ? 32 << 20 : drawn_from & 4 ? 100000 : 0};
        as_ranks(g, body, &drawn_from);
    }
}
