/* Calls that fail: they differ, or a rank leaves, dies or is interrupted. */
#include "core_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES (293 * KIB) /* more than a piece */

static hbm_call barrier(void) { return (hbm_call){.operation = HBM_BARRIER}; }

static int has_parts(const hbm_call *call)
{
    return (call->operation >= HBM_GATHERV && call->operation <= HBM_ALLTOALLV)
           || call->operation == HBM_REDUCE_SCATTER;
}

static int run(member *me, hbm_call call) { return hbm_run(me->comm, &call); }

/* ---- ranks make different calls ---- */

typedef struct {
    hbm_call common, other;
    int before, odd; /* calls that agree; the rank with the different call */
    int notes;       /* that call is served by MPI: the rank notes so many and goes on */
} quarrel;

/* Whether a failure reports a call; see pack() in posts.c. */
static int is_reported(const hbm_call *call, uint64_t what, uint64_t count)
{
    return (uint8_t)what == call->operation && (uint8_t)(what >> 8) == call->dtype
           && (uint8_t)(what >> 16) == call->reduction && (int32_t)(what >> 32) == call->root
           && (count == call->count || has_parts(call));
}

/* The call at which ranks differ. */
static int differ(member *me, const quarrel *q, hbm_call call)
{
    int status = HBM_OK;
    if (me->rank != q->odd || !q->notes)
        return run(me, call);
    for (int i = 0; i < q->notes && !status; i++)
        status = hbm_note(me->comm, call.operation);
    return status;
}

static void body_mismatch(member *me)
{
    const quarrel *q = me->shared;
    uint64_t room = BLOCK_BYTES * FEW_RANKS;
    unsigned char *memory = calloc(2, room);
    CHECK(memory, "no memory");
    int status = HBM_OK, calls = 0;
    for (; calls < q->before; calls++)
        CHECK(run(me, barrier()) == HBM_OK, "a barrier that all are in failed");
    hbm_call call = me->rank == q->odd ? q->other : q->common;
    call.send = (uintptr_t)memory;
    call.recv = call.operation == HBM_BCAST ? call.send : (uintptr_t)memory + room;
    for (int i = 0; i < 3 && !status; i++)
        status = i ? run(me, barrier()) : differ(me, q, call);
    CHECK(status == HBM_MISMATCH, "rank %d of %d: status %d, not a mismatch", me->rank, me->g.size,
          status);
    CHECK(run(me, barrier()) == HBM_MISMATCH, "the mismatch is forgotten");
    hbm_failure why;
    CHECK(hbm_failure_of(me->comm, &why) == HBM_MISMATCH, "no record");
    CHECK(why.own_what != why.others_what || why.own_count != why.others_count,
          "the two reported calls are equal");
    CHECK((why.rank == q->odd) != (why.other == q->odd), "ranks %d and %d called the same",
          why.rank, why.other);
    free(memory);
    if (q->notes > HISTORY - 4)
        return; /* the first call that differs may be off the record */
    const hbm_call *own = why.rank == q->odd ? &q->other : &q->common;
    const hbm_call *others = why.rank == q->odd ? &q->common : &q->other;
    CHECK(is_reported(own, why.own_what, why.own_count)
              && is_reported(others, why.others_what, why.others_count),
          "other calls are reported");
}

static hbm_call draw_call(dice *d, int size)
{
    hbm_call call = {.operation = (uint8_t)roll(d, HBM_FOREIGN), .dtype = HBM_INT32};
    if (has_parts(&call))
        call.operation = HBM_ALLTOALL;
    if (call.operation == HBM_BARRIER)
        return call;
    call.root = (int32_t)roll(d, (uint64_t)size);
    call.count = roll(d, 2) ? roll(d, 300) : BLOCK_BYTES / 4 - roll(d, 100);
    return call;
}

void test_mismatch(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    dice d = {seed};
    for (int round = 0; round < 8 || seconds_now() < end; round++) {
        group g = {.size = 2 + (int)roll(&d, FEW_RANKS - 1), .oversubscribed = round & 1};
        quarrel q = {.common = draw_call(&d, g.size), .before = (int)roll(&d, 20),
                     .odd = (int)roll(&d, (uint64_t)g.size)};
        q.other = q.common;
        switch (q.common.operation == HBM_BARRIER ? 9 : roll(&d, 6)) {
        case 0: /* where bytes are only moved, their number counts */
            q.other.dtype = q.common.operation < HBM_REDUCE ? HBM_INT16 : HBM_FLOAT32;
            q.other.count += !q.common.count;
            break;
        case 1: q.other.reduction = HBM_MAX; break;
        case 2: q.other.root = (q.common.root + 1) % g.size; break;
        case 3: q.other.count /= 2; q.other.count += q.common.count < 2; break;
        default:
            q.other = (hbm_call){.operation = HBM_FOREIGN + 3};
            q.notes = roll(&d, 3) ? (int)roll(&d, 2 * HISTORY) : 1000;
        }
        as_ranks(g, body_mismatch, &q);
    }
}

/* ---- a rank leaves ---- */

static void body_closed(member *me)
{
    uint64_t room = BLOCK_BYTES, drawn_from = *(uint64_t *)me->shared;
    int gone = (int)(drawn_from % (uint64_t)me->g.size);
    void *memory = calloc(2, room);
    CHECK(memory, "no memory");
    hbm_call call = {.operation = HBM_ALLREDUCE, .dtype = HBM_INT8,
                     .count = drawn_from >> 20 & 1 ? room : 100, .send = (uintptr_t)memory,
                     .recv = (uintptr_t)memory + room};
    CHECK(run(me, call) == HBM_OK, "a call of all ranks failed");
    if (me->rank == gone) {
        sleep_ms(drawn_from >> 30 & 1 ? 3 : 0);
        hbm_close(me->comm);
    }
    int status = run(me, call);
    CHECK(status == HBM_CLOSED, "rank %d: status %d", me->rank, status);
    hbm_failure why;
    hbm_failure_of(me->comm, &why);
    CHECK(why.rank == gone, "rank %d is reported to have left; it was rank %d", why.rank, gone);
    free(memory);
}

void test_closed(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < 4 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        group g = {.size = 2 + (int)(round % (FEW_RANKS - 1)), .oversubscribed = round & 1};
        as_ranks(g, body_closed, &drawn_from);
    }
}

/* ---- a signal's handler asks a rank to leave ---- */

static _Thread_local int is_asked;

static int asks_rank(void) { return is_asked; }

static void body_interrupted(member *me)
{
    if (me->rank == 0) { /* never enters the call, so that the others wait */
        sleep_ms(150);
        return;
    }
    is_asked = me->rank == 1;
    int status = run(me, barrier());
    CHECK(status == HBM_INTERRUPTED, "rank %d: status %d", me->rank, status);
    hbm_failure why;
    hbm_failure_of(me->comm, &why);
    CHECK(why.rank == 1, "rank %d is reported as interrupted", why.rank);
}

void test_interrupted(uint64_t seed, UNUSED double seconds)
{
    hbm_on_wait(asks_rank);
    as_ranks((group){.size = 4, .oversubscribed = (int)(seed & 1)}, body_interrupted, NULL);
}

/* ---- and leaves in the middle of a call, wherever that is when another rank stops ---- */

static pthread_t stopping;
static _Atomic int is_under_way, has_stopped, has_left;

/* The handler of rank 0: stops it until rank 1 has been asked and leaves. */
static void stop(int signal)
{
    (void)signal;
    atomic_store(&has_stopped, 1);
    while (!atomic_load(&has_left)) /* the test's time limit ends this */
        sleep_ms(1);
}

/* On a busy machine rank 1 may sleep long enough to be asked before rank 0 stops; it stays then. */
static int leaves_after_stop(void)
{
    int leaves = is_asked && atomic_load(&has_stopped);
    if (leaves)
        atomic_store(&has_left, 1);
    return leaves;
}

static void body_halfway(member *me)
{
    uint64_t room = BLOCK_BYTES * FEW_RANKS;
    unsigned char *memory = calloc(2, room);
    CHECK(memory, "no memory");
    static const uint8_t operations[] = {HBM_ALLREDUCE, HBM_ALLTOALL, HBM_BCAST, HBM_ALLGATHER};
    int status = HBM_OK, calls = 0;
    if (me->rank == 0)
        stopping = pthread_self();
    is_asked = me->rank == 1;
    for (; !status; calls++) {
        hbm_call call = {.operation = operations[calls / 8 % 4], .dtype = HBM_INT8,
                         .count = BLOCK_BYTES, .send = (uintptr_t)memory,
                         .recv = (uintptr_t)memory + room};
        if (call.operation == HBM_BCAST)
            call.recv = call.send;
        status = run(me, call);
        if (me->rank == 2 && calls == 2)
            atomic_store(&is_under_way, 1);
    }
    CHECK(status == HBM_INTERRUPTED, "rank %d: status %d in call %d", me->rank, status, calls);
    free(memory);
}

static void *stop_later(void *milliseconds)
{
    while (!atomic_load(&is_under_way))
        sleep_ms(1);
    sleep_ms(*(double *)milliseconds);
    pthread_kill(stopping, SIGUSR1);
    return NULL;
}

void test_halfway(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    dice d = {seed};
    hbm_on_wait(leaves_after_stop);
    signal(SIGUSR1, stop);
    for (int round = 0; round < 2 || seconds_now() < end; round++) {
        double later = (double)roll(&d, 1000) / 100;
        pthread_t thread;
        atomic_store(&is_under_way, 0);
        atomic_store(&has_stopped, 0);
        atomic_store(&has_left, 0);
        CHECK(!pthread_create(&thread, NULL, stop_later, &later), "no thread");
        as_ranks((group){.size = 3, .oversubscribed = round & 1}, body_halfway, NULL);
        pthread_join(thread, NULL);
    }
}

/* ---- a function of the program fails on one rank ---- */

#define COMBINED 1024 /* entries: one piece, or a slot's data */

typedef struct {
    int operation, failing; /* the rank whose function fails */
    uint64_t count;
} failing_call;

static int adds(uintptr_t fails, const void *a, void *b, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        ((uint64_t *)b)[i] += ((const uint64_t *)a)[i];
    if (fails)
        sleep_ms(2); /* the others sleep: one that is woken too early runs beside this rank */
    return fails != 0;
}

/* The result of a rank that ends without an error is right, wherever another one fails. */
static void body_failing(member *me)
{
    const failing_call *f = me->shared;
    uint64_t *memory = calloc(2, f->count * sizeof *memory);
    CHECK(memory, "no memory");
    uint64_t *send = memory, *recv = memory + f->count, expected = 0;
    for (uint64_t i = 0; i < f->count; i++)
        send[i] = (uint64_t)me->rank + 1;
    hbm_call call = {.operation = (uint8_t)f->operation, .reduction = HBM_USER,
                     .count = f->count, .entry_bytes = sizeof *send, .reduce = adds,
                     .function = me->rank == f->failing, .send = (uintptr_t)send,
                     .recv = (uintptr_t)recv};
    int status = run(me, call), last = f->operation == HBM_SCAN ? me->rank + 1 : me->g.size;
    CHECK(status == HBM_OK || status == HBM_INTERRUPTED, "rank %d: status %d", me->rank, status);
    CHECK(status || me->rank != f->failing, "the failing rank has no error");
    for (int r = 0; r < last; r++)
        expected += (uint64_t)r + 1;
    for (uint64_t i = 0; i < f->count && !status; i++)
        CHECK(recv[i] == expected, "rank %d: entry %llu is %llu, not %llu, without an error",
              me->rank, (unsigned long long)i, (unsigned long long)recv[i],
              (unsigned long long)expected);
    free(memory);
}

void test_failing(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    dice d = {seed};
    for (int round = 0; round < 40 || seconds_now() < end; round++) {
        group g = {.size = 2 + (int)roll(&d, 2), .oversubscribed = (int)roll(&d, 2)};
        failing_call f = {.operation = roll(&d, 2) ? HBM_ALLREDUCE : HBM_SCAN,
                          .failing = (int)roll(&d, (uint64_t)g.size),
                          .count = (roll(&d, 2) ? 5u : 40u) * COMBINED + roll(&d, 100)};
        if (f.operation == HBM_SCAN && f.failing == 0)
            f.failing = 1; /* rank 0 has nothing to combine */
        as_ranks(g, body_failing, &f);
    }
}

/* ---- a rank's process dies ---- */

/* One of two ranks dies; each holds a claim on a word that both map. */
void test_died(UNUSED uint64_t seed, UNUSED double seconds)
{
    segment words = new_segment(), segments[] = {new_segment(), new_segment()};
    uintptr_t claims[] = {(uintptr_t)words.memory, (uintptr_t)words.memory + 256};
    group g = {.size = 2};
    pid_t child = fork();
    hbm_claim *claim = hbm_acquire_claim(claims[!child], BOOT);
    CHECK(claim, "no claim");
    while (!hbm_is_claimed(claims[!!child], BOOT))
        sleep_ms(1);
    hbm_comm *comm = opened(g, !child, claims, segments);
    hbm_call call = barrier();
    CHECK(hbm_run(comm, &call) == HBM_OK, "the first barrier failed");
    if (!child) {
        sleep_ms(20);
        kill(getpid(), SIGKILL);
    }
    double began = seconds_now();
    CHECK(hbm_run(comm, &call) == HBM_PEER_DIED, "the death went unnoticed");
    /* Ranks look every 5 ms; the rest of the 10 s is for a machine under load. */
    CHECK(seconds_now() - began < 10, "noticed after %.1f s", seconds_now() - began);
    hbm_failure why;
    hbm_failure_of(comm, &why);
    CHECK(why.rank == 1, "rank %d is reported as dead", why.rank);
    CHECK(hbm_all_stopped(comm), "the dead still count");
    int ended;
    CHECK(waitpid(child, &ended, 0) == child && WIFSIGNALED(ended), "the child ended with %d",
          ended);
    hbm_free(comm);
    hbm_release_claim(claim);
    end_segment(segments[0]);
    end_segment(segments[1]);
    end_segment(words);
}
