/* Waiting: sleepers are woken and use no CPU; and calls that are refused before they wait. */
#include "core_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- sleep and wake ---- */

#define LENGTHS 4
#define NAPS (4 * LENGTHS)
#define AWAY_MS 56

/* Waits for a post, for steps of staged calls, and for readers of this rank's array.

   Naps double from 0.2 ms, so a rank is in one from 51 to 101 ms while the peer is away. Without a
   wake-up its call takes at least 101 ms. Other load may delay any call, but not all of a length;
   those of the last length have too many steps to be timed beside it. */
static void body_sleep(member *me)
{
    static const uint64_t counts[LENGTHS] = {1, 5000, 1000, 50000};
    double fastest[LENGTHS] = {0};
    for (int i = 0; i < NAPS; i++) {
        float *send = (float *)me->heap, *recv = malloc(50000 * sizeof *recv);
        CHECK(recv, "no memory");
        hbm_call call = {.operation = HBM_ALLREDUCE, .dtype = HBM_FLOAT32,
                         .count = counts[i % LENGTHS], .send = (uintptr_t)send,
                         .recv = (uintptr_t)recv};
        for (uint64_t k = 0; k < call.count; k++)
            send[k] = (float)(me->rank + i);
        if (i % me->g.size == me->rank)
            sleep_ms(AWAY_MS);
        double began = seconds_now();
        CHECK(hbm_run(me->comm, &call) == HBM_OK, "call %d failed", i);
        double took = seconds_now() - began, *least = &fastest[i % LENGTHS];
        if (i % me->g.size != me->rank && (!*least || took < *least))
            *least = took;
        float expected = (float)(me->g.size * i + me->g.size * (me->g.size - 1) / 2);
        for (uint64_t k = 0; k < call.count; k++)
            CHECK(recv[k] == expected, "call %d is wrong", i);
        free(recv);
    }
    for (int k = 0; k < LENGTHS - 1; k++)
        CHECK(fastest[k] < 0.09, "calls of %d floats woke late: %.3f s at best", (int)counts[k],
              fastest[k]);
    hbm_call call = {.operation = HBM_BARRIER};
    double used = cpu_seconds();
    if (me->rank == 0)
        sleep_ms(200);
    CHECK(hbm_run(me->comm, &call) == HBM_OK, "the barrier failed");
    CHECK(cpu_seconds() - used < 0.05, "a rank that waited 0.2 s used %.3f s of a CPU",
          cpu_seconds() - used);
}

void test_sleep(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 3, .cache_bytes = 1 << 20}, body_sleep, NULL);
    as_ranks((group){.size = 4, .cache_bytes = 1 << 20, .oversubscribed = 1}, body_sleep, NULL);
}

/* ---- two threads in one communicator ---- */

static _Atomic int busy_count;

static void *enter(void *comm)
{
    hbm_call call = {.operation = HBM_BARRIER};
    int status = hbm_run(comm, &call);
    CHECK(status == HBM_OK || status == HBM_BUSY, "status %d", status);
    atomic_fetch_add(&busy_count, status == HBM_BUSY);
    return NULL;
}

static void body_busy(member *me)
{
    pthread_t threads[2];
    if (me->rank == 0) {
        for (int t = 0; t < 2; t++)
            CHECK(!pthread_create(&threads[t], NULL, enter, me->comm), "no thread");
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
    } else {
        while (!atomic_load(&busy_count)) /* the test's time limit ends this */
            sleep_ms(1);
        enter(me->comm);
    }
}

void test_busy(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 2}, body_busy, NULL);
    CHECK(atomic_load(&busy_count) == 1, "%d threads were refused", atomic_load(&busy_count));
}

/* ---- no communicator, no call, a fork, a closed communicator ---- */

static int in_a_fork(hbm_comm *comm)
{
    hbm_call call = {.operation = HBM_BARRIER};
    pid_t child = fork();
    if (!child) {
        int status = hbm_run(comm, &call);
        hbm_close(comm); /* does not signal in the name of its parent */
        _exit(status);
    }
    int ended;
    CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended), "the child crashed");
    return WEXITSTATUS(ended);
}

void test_refused(UNUSED uint64_t seed, UNUSED double seconds)
{
    group g = {.size = 1};
    segment own = new_segment();
    hbm_comm *comm = opened(g, 0, NULL, &own);
    hbm_call call = {.operation = HBM_BARRIER};
    CHECK(hbm_run(NULL, &call) == HBM_UNREADABLE, "NULL is a communicator");
    CHECK(hbm_run(comm, NULL) == HBM_UNREADABLE, "NULL is a call");
    CHECK(hbm_barrier(NULL) == HBM_UNREADABLE, "NULL is a communicator");
    CHECK(hbm_start_once(NULL, &call, 1) == HBM_UNREADABLE, "NULL is a communicator");
    for (int operation = HBM_BCAST; operation < HBM_FOREIGN; operation++) {
        hbm_call read;
        CHECK(!hbm_read_call(NULL, operation, 0, 0, HBM_SUM, 0, &read), "NULL is a communicator");
        for (int root = -1; root <= 1; root += 2)
            CHECK(!hbm_read_call(comm, operation, 0, 0, HBM_SUM, root, &read),
                  "rank %d is the root", root);
    }
    for (int size = -1; size <= 0; size++)
        CHECK(!hbm_open(&(hbm_setup){.size = size}), "there is a group of %d ranks", size);
    CHECK(!hbm_open(&(hbm_setup){.size = MAX_RANKS + 1}), "there is a group too large");
    CHECK(in_a_fork(comm) == HBM_FORKED, "a fork's call was not refused");
    CHECK(hbm_run(comm, &call) == HBM_OK, "the fork broke its parent's communicator");
    hbm_close(comm);
    end_segment(own); /* it may be unmapped now */
    CHECK(hbm_run(comm, &call) == HBM_CLOSED, "a call after hbm_close was not refused");
    hbm_free(comm);
}
