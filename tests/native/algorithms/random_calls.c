/* Random sequences of all operations, each result compared with the reference.

   Some reductions are functions of the program, on entries of up to 560,000 bytes. Calls are
   blocking, or started and completed some calls later. After every call a rank overwrites its
   buffers: a rank that still reads or writes them makes a result wrong. */
#include "buffers.h"

#define CALLS 120
#define STRETCH 20 /* calls between two draws of how far ranks may run ahead */
#define MOST_BYTES (1280 * 1024)
#define MOST_STARTED 4

typedef struct {
    hbm_call call;
    uint64_t seed;
    int sends_shared[MOST_RANKS], receives_shared[MOST_RANKS], in_place[MOST_RANKS];
    uint64_t skew[MOST_RANKS]; /* entries by which buffers are off a cache line */
    int late;                  /* a rank that sleeps before the call; -1: none */
    int started;               /* nonblocking: it is completed later */
    uint64_t per_entry;        /* not 0: a function of the program reduces so many at a time */
    uint64_t notes;            /* calls that MPI serves before this one, which wait for nobody */
} drawn;

/* Sizes around the thresholds between the core's algorithms. */
static uint64_t draw_bytes(dice *d, uint64_t size)
{
    static const uint64_t edges[] = {0, 64, 80, 512, 2 << 10, 4 << 10, 8 << 10, 32 << 10, 128 << 10,
                                     256 << 10, 512 << 10, 1 << 20};
    uint64_t edge = edges[roll(d, roll(d, 3) ? 8 : sizeof edges / sizeof *edges)];
    if (roll(d, 3) == 0)
        edge /= size; /* the threshold of calls with one block for each rank */
    uint64_t off = roll(d, 3) ? roll(d, 5) * 8 : roll(d, edge / 2 + 64);
    return roll(d, 2) ? edge + off : edge - (off < edge ? off : edge);
}

/* Calls from one rank to the others, or to one rank from the others. */
static void draw_one_way(dice *d, uint64_t stretch, drawn *w)
{
    static const uint8_t ways[2][2] = {{HBM_BCAST, HBM_SCATTER}, {HBM_GATHER, HBM_REDUCE}};
    w->call.operation = ways[stretch >> 8 & 1][roll(d, 2)];
    w->call.root = (int32_t)(stretch >> 16 & 0xff);
}

static int has_one_block(int operation)
{
    return operation == HBM_BCAST || operation == HBM_REDUCE || operation == HBM_ALLREDUCE
           || operation == HBM_SCAN || operation == HBM_EXSCAN;
}

static int is_scan(const hbm_call *call)
{
    return call->operation == HBM_SCAN || call->operation == HBM_EXSCAN;
}

/* Entries of a function of the program. It takes no halves: it rounds after each operation; and its
   order of operations is not that of the reference, so values are exact. */
static uint64_t draw_per_entry(dice *d, const hbm_call *call)
{
    static const uint64_t lengths[] = {1, 3, 64, 1000, 9000, 70000};
    if (call->operation < HBM_REDUCE || call->operation == HBM_REDUCE_SCATTER
        || call->dtype > HBM_UINT64 || roll(d, 3))
        return 0;
    return lengths[roll(d, sizeof lengths / sizeof *lengths)];
}

static drawn draw(dice *d, int size, uint64_t stretch)
{
    drawn w = {.seed = mixed(d->state), .late = roll(d, 60) ? -1 : (int)roll(d, (uint64_t)size)};
    uint64_t bytes = draw_bytes(d, (uint64_t)size), most = MOST_BYTES;
    int fixed = (int)roll(d, 3); /* all buffers in the arena, none, or a mixture */
    w.call.operation = (uint8_t)roll(d, HBM_FOREIGN + 1);
    w.call.root = (int32_t)roll(d, (uint64_t)size);
    w.started = roll(d, 4) == 0;
    w.notes = roll(d, 4) ? 0 : roll(d, 2) ? 1 : roll(d, 3 * SLOTS);
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
    if (!has_one_block(w.call.operation))
        most /= (uint64_t)size;
    do {
        w.call.dtype = (uint8_t)roll(d, HBM_DTYPES);
        w.call.reduction = (uint8_t)roll(d, HBM_REDUCTIONS);
    } while (w.call.operation >= HBM_REDUCE && !hbm_reduces(w.call.dtype, w.call.reduction));
    if (is_scan(&w.call) && (w.call.dtype == HBM_FLOAT16 || w.call.dtype == HBM_BFLOAT16))
        w.call.dtype = HBM_FLOAT32; /* a long scan rounds halves on every rank */
    w.call.count = (bytes < most ? bytes : most) / hbm_dtype_size(w.call.dtype);
    w.per_entry = draw_per_entry(d, &w.call);
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

static int works_in_place(const hbm_call *call, int rank)
{
    switch (call->operation) {
    case HBM_BCAST:
    case HBM_ALLGATHER:
    case HBM_ALLGATHERV:
    case HBM_ALLREDUCE:
    case HBM_SCAN:
    case HBM_EXSCAN:
        return 1;
    case HBM_GATHER:
    case HBM_GATHERV:
    case HBM_SCATTER:
    case HBM_SCATTERV:
    case HBM_REDUCE:
        return rank == call->root;
    default:
        return 0;
    }
}

/* ---- a call ---- */

typedef struct {
    drawn w;
    int number, in_place;
    uint64_t sent, received; /* entries */
    buffer send, recv;
    hbm_part send_parts[MOST_RANKS], recv_parts[MOST_RANKS];
    hbm_call call;
    hbm_operation *started;
    int unserved;
} attempt;

/* A function of the program that does what the call's reduction does. */
static int reduce_entries(uintptr_t function, const void *a, void *b, uint64_t n)
{
    const attempt *t = (const attempt *)function;
    hbm_call call = t->w.call;
    call.count = n * t->w.per_entry;
    return hbm_fold(&call, (const void *[]){a, b}, 2, b);
}

static hbm_call passed(const attempt *a)
{
    hbm_call call = a->call;
    if (a->w.per_entry) {
        call.reduction = HBM_USER;
        call.dtype = HBM_PACKED;
        call.entry_bytes = a->w.per_entry * hbm_dtype_size(a->call.dtype);
        call.count /= a->w.per_entry;
        call.reduce = reduce_entries;
        call.function = (uintptr_t)a;
    }
    return call;
}

static void check_one(const member *me, const attempt *a)
{
    const hbm_call *call = &a->call;
    uint64_t size = hbm_dtype_size(call->dtype);
    unsigned char *expected = malloc((a->received > a->sent ? a->received : a->sent) * size + 1);
    CHECK(expected, "no memory");
    memset(expected, 0x5A, a->received * size);
    if (a->in_place && call->operation == HBM_EXSCAN)
        fill_input(call, a->w.seed, me->g.size, me->rank, expected);
    expect_output(call, a->w.seed, me->g.size, me->rank, expected);
    CHECK(same_output(call, (void *)call->recv, expected, a->received),
          "call %d on rank %d of %d%s%s: operation %d of %llu x dtype %d, reduction %d, root %d, "
          "%s in the arena, %s in it, %sin place: wrong result",
          a->number, me->rank, me->g.size, me->g.oversubscribed ? " (oversubscribed)" : "",
          a->w.started ? " (started)" : "", call->operation, (unsigned long long)call->count,
          call->dtype, call->reduction, call->root,
          a->w.sends_shared[me->rank] ? "sent" : "sent not",
          a->w.receives_shared[me->rank] ? "received" : "received not", a->in_place ? "" : "not ");
    if (!a->in_place && a->sent && !differs_in_length(call)) {
        fill_input(call, a->w.seed, me->g.size, me->rank, expected);
        CHECK(same_output(call, a->send.at, expected, a->sent),
              "call %d on rank %d, operation %d of %llu x dtype %d, changed its input",
              a->number, me->rank, call->operation, (unsigned long long)call->count, call->dtype);
    }
    free(expected);
}

/* In place: the offset of one buffer in the other, in entries. */
static uint64_t shift_in_place(const member *me, const attempt *a)
{
    const hbm_call *call = &a->w.call;
    int r = me->rank;
    switch (call->operation) {
    case HBM_GATHER:
    case HBM_GATHERV:
    case HBM_ALLGATHER:
    case HBM_ALLGATHERV:
        return received_from(call, a->w.seed, r, r).first;
    case HBM_SCATTER:
    case HBM_SCATTERV:
        return sent_to(call, a->w.seed, r, r).first;
    default:
        return 0;
    }
}

static void set_parts(const member *me, attempt *a, uint64_t size)
{
    int sends = 0, receives = 0, r = me->rank, n = me->g.size;
    switch (a->call.operation) {
    case HBM_ALLTOALLV: sends = receives = 1; break;
    case HBM_ALLGATHERV: receives = 1; break;
    case HBM_GATHERV: receives = r == a->call.root; break;
    case HBM_SCATTERV: sends = r == a->call.root; break;
    case HBM_REDUCE_SCATTER: sends = 1; break;
    default: break;
    }
    for (int i = 0; i < n; i++) {
        span s = sent_to(&a->w.call, a->w.seed, r, i);
        span t = received_from(&a->w.call, a->w.seed, r, i);
        a->send_parts[i] = (hbm_part){s.first * size, s.count * size};
        a->recv_parts[i] = (hbm_part){t.first * size, t.count * size};
    }
    a->call.send_parts = sends ? a->send_parts : NULL;
    a->call.recv_parts = receives ? a->recv_parts : NULL;
    if (differs_in_length(&a->call)) /* entries of this rank's own block */
        a->call.count = entries_between(&a->w.call, a->w.seed, a->call.operation == HBM_SCATTERV
                                            ? a->call.root : r, r);
}

static void prepare(member *me, attempt *a, unsigned char *heap, uint64_t room)
{
    const drawn *w = &a->w;
    int r = me->rank;
    a->call = w->call;
    a->in_place = works_in_place(&a->call, r) && (w->in_place[r] || a->call.operation == HBM_BCAST);
    a->sent = entries_sent(&w->call, w->seed, me->g.size, r);
    a->received = entries_received(&w->call, w->seed, me->g.size, r);
    uint64_t size = hbm_dtype_size(a->call.dtype), skew = w->skew[r] * size;
    uint64_t sent = a->sent * size, received = a->received * size;
    uint64_t shift = shift_in_place(me, a) * size;
    a->send = a->recv = (buffer){0};
    if (a->in_place) {
        a->recv = new_buffer(heap, w->receives_shared[r], sent > received ? sent : received, skew);
        int sends_more = a->call.operation == HBM_SCATTER || a->call.operation == HBM_SCATTERV;
        a->call.send = (uintptr_t)a->recv.at + (sends_more ? 0 : shift);
        a->call.recv = (uintptr_t)a->recv.at + (sends_more ? shift : 0);
    } else {
        if (sent)
            a->send = new_buffer(heap, w->sends_shared[r], sent, skew);
        if (received)
            a->recv = new_buffer(heap + room / 2, w->receives_shared[r], received, skew);
        a->call.send = (uintptr_t)a->send.at;
        a->call.recv = (uintptr_t)a->recv.at;
    }
    if (sent)
        fill_input(&w->call, w->seed, me->g.size, r, (void *)a->call.send);
    set_parts(me, a, size);
}

static void complete(member *me, attempt *a)
{
    if (a->started) {
        int status = hbm_wait(a->started, 0);
        CHECK(status == HBM_OK, "call %d on rank %d completed with status %d", a->number, me->rank,
              status);
        hbm_drop(a->started);
        a->started = NULL;
    }
    uint64_t count = a->call.count;
    a->call.count = a->w.call.count;
    if (a->call.operation < HBM_FOREIGN && !a->unserved)
        check_one(me, a);
    a->call.count = count;
    end_buffer(a->send);
    end_buffer(a->recv);
}

static void begin(member *me, attempt *a, dice *own)
{
    for (uint64_t i = 0; i < a->w.notes; i++)
        CHECK(hbm_note(me->comm, HBM_FOREIGN + (int)(i % 3)) == HBM_OK, "note %llu before call %d",
              (unsigned long long)i, a->number);
    if (a->w.late == me->rank)
        sleep_ms(2);
    for (volatile uint64_t burnt = roll(own, 4) ? 0 : roll(own, 20000); burnt; burnt--)
        ;
    hbm_call call = passed(a);
    a->unserved = me->g.host_of ? hbm_check(me->comm, &call) == HBM_UNSERVED
                                : !hbm_serves(&call, me->g.size);
    if (a->unserved) {
        a->w.started = 0;
        CHECK(hbm_run(me->comm, &call) == HBM_UNSERVED && hbm_check(me->comm, &call) == HBM_UNSERVED,
              "call %d on rank %d is served", a->number, me->rank);
    } else if (a->w.started) {
        a->started = hbm_new(me->comm, &call);
        int status = hbm_start(a->started, 0);
        CHECK(status == HBM_OK || status == HBM_PENDING,
              "call %d on rank %d started with status %d", a->number, me->rank, status);
    } else {
        int status = hbm_run(me->comm, &call);
        CHECK(status == HBM_OK, "call %d on rank %d gave status %d: operation %d, %llu x dtype %d",
              a->number, me->rank, status, a->call.operation, (unsigned long long)a->call.count,
              a->call.dtype);
    }
}

/* The most entries of any rank, so that all ranks shorten a call equally. */
static uint64_t most_entries(const member *me, const drawn *w)
{
    uint64_t most = 0;
    for (int r = 0; r < me->g.size; r++) {
        uint64_t sent = entries_sent(&w->call, w->seed, me->g.size, r);
        uint64_t received = entries_received(&w->call, w->seed, me->g.size, r);
        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }
    return most;
}

static void body(member *me)
{
    dice common = {*(uint64_t *)me->shared}, own = {mixed(common.state + (uint64_t)me->rank)};
    attempt *attempts = calloc(MOST_STARTED, sizeof *attempts);
    uint64_t stretch = 1, room = HEAP_BYTES / MOST_STARTED;
    CHECK(attempts, "no memory");
    for (int i = 0; i < CALLS / (1 + me->g.size / 32); i++) {
        if (i % STRETCH == 0)
            stretch = mixed(common.state);
        attempt *a = &attempts[i % MOST_STARTED];
        if (a->started) /* some complete late, and so out of order */
            complete(me, a);
        memset(a, 0, sizeof *a);
        a->number = i;
        a->w = draw(&common, me->g.size, stretch);
        while (most_entries(me, &a->w) * hbm_dtype_size(a->w.call.dtype) > room / 2 - 4096)
            a->w.call.count /= 2;
        if (a->w.per_entry > a->w.call.count)
            a->w.per_entry = 0;
        if (a->w.per_entry)
            a->w.call.count -= a->w.call.count % a->w.per_entry;
        prepare(me, a, me->heap + (uint64_t)(i % MOST_STARTED) * room, room);
        begin(me, a, &own);
        if (!a->w.started)
            complete(me, a);
        for (int k = 0; k < MOST_STARTED; k++)
            if (attempts[k].started && roll(&own, 4) == 0)
                complete(me, &attempts[k]);
    }
    for (int k = 0; k < MOST_STARTED; k++)
        if (attempts[k].started)
            complete(me, &attempts[k]);
    free(attempts);
    hbm_call last = {.operation = HBM_BARRIER};
    CHECK(hbm_run(me->comm, &last) == HBM_OK, "the last barrier failed");
}

/* One sequence of calls. Where the group does not reduce in the order of ranks, values are
   exact. */
void random_sequence(group g, uint64_t seed)
{
    only_exact_values = g.machine || g.fan_in || g.size > 8 || g.host_of;
    as_ranks(g, body, &seed);
    only_exact_values = 0;
}

void test_random_calls(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < 4 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        random_sequence((group){.size = FEW_RANKS - (int)(round % FEW_RANKS),
                                .oversubscribed = drawn_from & 1,
                                .machine = drawn_from >> 3 & 1 ? odd_and_even : NULL,
                                .reads_private = drawn_from >> 4 & 1,
                                .fan_in = drawn_from >> 5 & 1 ? 2 : 0,
                                .cache_bytes = drawn_from & 2 ? 32 << 20
                                               : drawn_from & 4 ? 100000 : 0},
                        drawn_from);
    }
}
