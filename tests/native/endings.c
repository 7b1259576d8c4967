/* Calls that do not go as they should: they differ, a rank leaves, dies, or wants out. */
#include "core_test.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES 300000 /* more than a piece */

static hbm_call barrier(void) { return (hbm_call){.operation = HBM_BARRIER}; }

static int run(member *me, hbm_call call) { return hbm_run(me->comm, &call); }

/* ---- ranks call different things ---- */

typedef struct {
    hbm_call common, other;
    int before, odd; /* calls that agree; then the rank whose call does not */
} quarrel;

static int differ(const hbm_call *a, const hbm_call *b)
{
    return a->operation != b->operation || a->dtype != b->dtype || a->reduction != b->reduction
           || a->root != b->root || a->count != b->count;
}

static void body_mismatch(member *me)
{
    const quarrel *q = me->shared;
    uint64_t room = BLOCK_BYTES * MOST_RANKS;
    unsigned char *memory = calloc(2, room);
    CHECK(memory, "no memory");
    int status = HBM_OK, calls = 0;
    for (; calls < q->before; calls++)
        CHECK(run(me, barrier()) == HBM_OK, "a barrier that all are in failed");
    hbm_call call = me->rank == q->odd ? q->other : q->common;
    call.send = (uintptr_t)memory;
    call.recv = call.operation == HBM_BCAST ? call.send : (uintptr_t)memory + room;
    for (int i = 0; i < 3 && !status; i++)
        status = run(me, i ? barrier() : call);
    CHECK(status == HBM_MISMATCH, "rank %d of %d: status %d, not a mismatch", me->rank, me->g.size,
          status);
    CHECK(run(me, barrier()) == HBM_MISMATCH, "the mismatch is forgotten");
    hbm_failure why;
    CHECK(hbm_failure_of(me->comm, &why) == HBM_MISMATCH, "no record");
    CHECK(differ(&why.own, &why.others), "the two calls told of are the same");
    CHECK((why.rank == q->odd) != (why.other == q->odd), "ranks %d and %d called the same",
          why.rank, why.other);
    const hbm_call *odds = why.rank == q->odd ? &why.own : &why.others;
    const hbm_call *commons = why.rank == q->odd ? &why.others : &why.own;
    CHECK(!differ(odds, &q->other) && !differ(commons, &q->common), "other calls are told of");
    free(memory);
}

static hbm_call draw_call(dice *d, int size)
{
    hbm_call call = {.operation = (uint8_t)roll(d, HBM_FOREIGN), .dtype = HBM_INT32};
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
        group g = {.size = 2 + (int)roll(&d, MOST_RANKS - 1), .oversubscribed = round & 1};
        quarrel q = {.common = draw_call(&d, g.size), .before = (int)roll(&d, 20),
                     .odd = (int)roll(&d, (uint64_t)g.size)};
        q.other = q.common;
        switch (q.common.operation == HBM_BARRIER ? 9 : roll(&d, 5)) {
        case 0: q.other.dtype = HBM_FLOAT32; break;
        case 1: q.other.reduction = HBM_MAX; break;
        case 2: q.other.root = (q.common.root + 1) % g.size; break;
        case 3: q.other.count /= 2; q.other.count += q.common.count < 2; break;
        default: q.other = (hbm_call){.operation = HBM_FOREIGN + 3}; break;
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
    CHECK(why.rank == gone, "rank %d is told to have left; it was rank %d", why.rank, gone);
    free(memory);
}

void test_closed(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < 4 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        group g = {.size = 2 + (int)(round % (MOST_RANKS - 1)), .oversubscribed = round & 1};
        as_ranks(g, body_closed, &drawn_from);
    }
}

/* ---- a signal's handler wants a rank out ---- */

static _Thread_local int wants_out;

static int is_wanted_out(void) { return wants_out; }

static void body_interrupted(member *me)
{
    if (me->rank == 0) { /* never enters the call, so that the others wait */
        sleep_ms(150);
        return;
    }
    wants_out = me->rank == 1;
    int status = run(me, barrier());
    CHECK(status == HBM_INTERRUPTED, "rank %d: status %d", me->rank, status);
    hbm_failure why;
    hbm_failure_of(me->comm, &why);
    CHECK(why.rank == 1, "rank %d is told to be interrupted", why.rank);
}

void test_interrupted(uint64_t seed, double seconds)
{
    (void)seconds;
    hbm_on_wait(is_wanted_out);
    as_ranks((group){.size = 4, .oversubscribed = (int)(seed & 1)}, body_interrupted, NULL);
}

/* ---- and that in the middle of a call, wherever it is when another rank stops ---- */

static pthread_t stopping;
static _Atomic int is_under_way;

static void stop(int signal)
{
    (void)signal;
    sleep_ms(300);
}

static void body_halfway(member *me)
{
    uint64_t room = BLOCK_BYTES * MOST_RANKS;
    unsigned char *memory = calloc(2, room);
    CHECK(memory, "no memory");
    static const uint8_t operations[] = {HBM_ALLREDUCE, HBM_ALLTOALL, HBM_BCAST, HBM_ALLGATHER};
    int status = HBM_OK, calls = 0;
    if (me->rank == 0)
        stopping = pthread_self();
    wants_out = me->rank == 1; /* asked once it has slept for long, and so after the stop */
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
    hbm_on_wait(is_wanted_out);
    signal(SIGUSR1, stop);
    for (int round = 0; round < 2 || seconds_now() < end; round++) {
        double later = (double)roll(&d, 1000) / 100;
        pthread_t thread;
        atomic_store(&is_under_way, 0);
        CHECK(!pthread_create(&thread, NULL, stop_later, &later), "no thread");
        as_ranks((group){.size = 3, .oversubscribed = round & 1}, body_halfway, NULL);
        pthread_join(thread, NULL);
    }
}

/* ---- a rank's process dies ---- */

static void hold_lock(int file, int rank)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = rank, .l_len = 1};
    CHECK(fcntl(file, F_SETLK, &lock) == 0, "no lock");
}

/* A rank's lock, or the claim that stands for it once both ranks have theirs. */
static hbm_claim *hold(int file, const uintptr_t *claims, int rank)
{
    if (file >= 0) {
        hold_lock(file, rank);
        return NULL;
    }
    hbm_claim *claim = hbm_take(claims[rank], BOOT);
    CHECK(claim, "no claim");
    while (!hbm_is_taken(claims[!rank], BOOT))
        sleep_ms(1);
    return claim;
}

/* One of two ranks dies. They hold locks on `file`, or with none (-1) claims. */
static void check_death(int file)
{
    uintptr_t claims[] = {(uintptr_t)new_segment(), (uintptr_t)new_segment()};
    const uintptr_t *used = file < 0 ? claims : NULL;
    group g = {.size = 2};
    unsigned char *segments[] = {new_segment(), new_segment()};
    if (file >= 0)
        hold_lock(file, 0);
    pid_t child = fork();
    if (!child) {
        hold(file, claims, 1);
        hbm_comm *comm = opened(g, 1, file, used, segments);
        hbm_call call = barrier();
        int status = hbm_run(comm, &call);
        sleep_ms(20);
        _exit(status); /* without hbm_close, as a process that is killed */
    }
    hbm_claim *claim = file < 0 ? hold(file, claims, 0) : NULL;
    hbm_comm *comm = opened(g, 0, file, used, segments);
    hbm_call call = barrier();
    CHECK(hbm_run(comm, &call) == HBM_OK, "the first barrier failed");
    double began = seconds_now();
    CHECK(hbm_run(comm, &call) == HBM_PEER_DIED, "the death went unnoticed");
    CHECK(seconds_now() - began < 5, "noticed after %.1f s", seconds_now() - began);
    hbm_failure why;
    hbm_failure_of(comm, &why);
    CHECK(why.rank == 1, "rank %d is told to have died", why.rank);
    int ended;
    CHECK(waitpid(child, &ended, 0) == child && ended == 0, "the child ended with %d", ended);
    hbm_free(comm);
    if (claim)
        hbm_give(claim);
    munmap(segments[0], HEAP_OFFSET + HEAP_BYTES);
    munmap(segments[1], HEAP_OFFSET + HEAP_BYTES);
    munmap((void *)claims[0], HEAP_OFFSET + HEAP_BYTES);
    munmap((void *)claims[1], HEAP_OFFSET + HEAP_BYTES);
}

void test_died(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    FILE *held = tmpfile();
    CHECK(held, "no file");
    check_death(fileno(held));
    fclose(held);
}

void test_died_with_claim(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    check_death(-1);
}
