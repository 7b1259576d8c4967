/* Messages that senders write into private memory of receivers. */
#include "core_test.h"

#include "buffers.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#define BLOCK (300 * 1024) /* longer than what is pushed at least; no whole number of pages */
#define LONG (24 * 1024 * KIB) /* written in many parts */

static unsigned char byte_of(int rank, uint64_t i) { return (unsigned char)(7 * i + 31 * (uint64_t)rank + 1); }

static void fill(buffer b, int rank)
{
    for (uint64_t i = 0; i < b.bytes; i++)
        b.at[i] = byte_of(rank, i);
}

/* ---- right bytes, and none beside them ---- */

/* `shared`: bit r is set where rank r has its buffers in the arena. */
static void body_pushed(member *me)
{
    int n = me->g.size, in_arena = *(int *)me->shared >> me->rank & 1;
    buffer send = new_buffer(me->heap, in_arena, BLOCK, 3);
    buffer recv = new_buffer(me->heap + 2 * BLOCK, in_arena, (uint64_t)n * BLOCK, 5);
    for (int root = 0; root < n; root++) {
        fill(send, me->rank == root ? n : me->rank);
        hbm_call bcast = {.operation = HBM_BCAST, .dtype = HBM_UINT8, .count = BLOCK, .root = root,
                          .send = (uintptr_t)send.at, .recv = (uintptr_t)send.at};
        CHECK(hbm_run(me->comm, &bcast) == HBM_OK, "the broadcast failed");
        for (uint64_t i = 0; i < BLOCK; i++)
            CHECK(send.at[i] == byte_of(n, i), "rank %d got a wrong byte at %d", me->rank, (int)i);
        fill(send, me->rank);
        memset(recv.at, 0, recv.bytes);
        hbm_call gather = {.operation = HBM_GATHER, .dtype = HBM_UINT8, .count = BLOCK, .root = root,
                           .send = (uintptr_t)send.at, .recv = (uintptr_t)recv.at};
        CHECK(hbm_run(me->comm, &gather) == HBM_OK, "the gather failed");
        for (uint64_t i = 0; me->rank == root && i < recv.bytes; i++)
            CHECK(recv.at[i] == byte_of((int)(i / BLOCK), i % BLOCK), "wrong byte at %d", (int)i);
    }
    CHECK(hbm_staging(me->comm) == HBM_NOWHERE, "memory that can be reached was not written");
    end_buffer(recv);
    end_buffer(send);
}

/* ---- memory of a rank that failed is its program's again ---- */

static _Thread_local int is_asked;
static pthread_t leaver;
static _Atomic int has_begun;

static int asks_to_leave(void) { return is_asked; }

static void wake(int signal) { (void)signal; }

/* Interrupts the root's sleep while others write into its array. */
static void *interrupt_later(void *seconds)
{
    while (!atomic_load(&has_begun))
        sched_yield();
    for (double end = seconds_now() + *(double *)seconds; seconds_now() < end;)
        sched_yield();
    pthread_kill(leaver, SIGUSR2);
    return NULL;
}

static void body_reused(member *me)
{
    uint64_t bytes = (uint64_t)me->g.size * LONG;
    unsigned char *memory = malloc(bytes);
    CHECK(memory, "no memory");
    memset(memory, me->rank, bytes);
    hbm_call gather = {.operation = HBM_GATHER, .dtype = HBM_UINT8, .count = LONG,
                       .send = (uintptr_t)memory, .recv = (uintptr_t)memory};
    pthread_t thread;
    is_asked = !me->rank;
    if (is_asked) {
        leaver = pthread_self();
        CHECK(!pthread_create(&thread, NULL, interrupt_later, me->shared), "no thread");
        atomic_store(&has_begun, 1);
    }
    int status = hbm_run(me->comm, &gather);
    CHECK(!status || status == HBM_INTERRUPTED, "status %d", status);
    if (is_asked && status) { /* one byte of each page: quicker than a write that is under way */
        for (uint64_t i = LONG; i < bytes; i += PAGE)
            memory[i] = 0xEE;
        sleep_ms(3);
        for (uint64_t i = LONG; i < bytes; i += PAGE)
            CHECK(memory[i] == 0xEE, "a byte was written at %d after the failure", (int)i);
    }
    if (is_asked)
        pthread_join(thread, NULL);
    free(memory);
}

void test_pushes(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    dice d = {seed};
    for (int places = 0; places < 8; places++)
        as_ranks((group){.size = 3, .reads_private = 1}, body_pushed, &places);
    hbm_on_wait(asks_to_leave);
    signal(SIGUSR2, wake);
    for (int round = 0; round < 8 || seconds_now() < end; round++) {
        double later = (double)roll(&d, 100) * 40e-6;
        atomic_store(&has_begun, 0);
        as_ranks((group){.size = 2, .oversubscribed = 1, .reads_private = 1}, body_reused, &later);
    }
}
