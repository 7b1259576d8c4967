/* Measures how fast two cores copy through memory that they write and read in turn: with few
   buffers and with many, in order and alternating between four pages. Prints GB/s, of so many
   seconds for all together; fails on wrong bytes. */
#define _GNU_SOURCE
#include "core_test.h"

#include <pthread.h>
#include <sched.h>

#define ENDED (-1)
#define MEASURED 20

typedef struct {
    uint64_t bytes, buffers, rounds;
    double seconds;
    void (*copy)(void *, const void *, uint64_t);
    unsigned char *source, *shared, *target;
    _Atomic int turn; /* odd: the reader's; ENDED */
    double writing, reading;
} pair;

static void use_cpu(int number)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && !number--)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one))
        sched_setaffinity(0, sizeof one, &one);
}

static unsigned char *buffer_of(pair *p, int round)
{
    return p->shared + (uint64_t)round % p->buffers * p->bytes;
}

/* Whether that turn came; else the other has ended. */
static int comes(pair *p, int turn)
{
    int current;
    while ((current = atomic_load_explicit(&p->turn, memory_order_acquire)) != turn
           && current != ENDED)
        sched_yield();
    return current == turn;
}

static void *read_all(void *argument)
{
    pair *p = argument;
    use_cpu(1);
    for (int round = 0; comes(p, 2 * round + 1); round++) {
        double began = seconds_now();
        p->copy(p->target, buffer_of(p, round), p->bytes);
        p->reading += seconds_now() - began;
        CHECK(p->target[0] == (round & 0xFF) && p->target[p->bytes - 1] == (round & 0xFF),
              "round %d: other bytes than were written", round);
        atomic_store_explicit(&p->turn, 2 * round + 2, memory_order_release);
    }
    return NULL;
}

static void *write_all(void *argument)
{
    pair *p = argument;
    use_cpu(0);
    for (double end = seconds_now() + p->seconds, began = 0; began < end; p->rounds++) {
        int round = (int)p->rounds;
        memset(p->source, round, p->bytes);
        began = seconds_now();
        hbm_copy(buffer_of(p, round), p->source, p->bytes);
        p->writing += seconds_now() - began;
        atomic_store_explicit(&p->turn, 2 * round + 1, memory_order_release);
        comes(p, 2 * round + 2);
    }
    atomic_store_explicit(&p->turn, ENDED, memory_order_release);
    return NULL;
}

static void measure(pair p, const char *how)
{
    pthread_t threads[2];
    uint64_t room = p.buffers * p.bytes;
    p.source = aligned_alloc(PAGE, p.bytes);
    p.target = aligned_alloc(PAGE, p.bytes);
    p.shared = aligned_alloc(PAGE, room);
    CHECK(p.source && p.target && p.shared, "no memory");
    memset(p.shared, 1, room);
    memset(p.target, 1, p.bytes);
    CHECK(!pthread_create(&threads[0], NULL, write_all, &p), "no thread");
    CHECK(!pthread_create(&threads[1], NULL, read_all, &p), "no thread");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    double all = 1e-9 * (double)p.rounds * (double)p.bytes;
    printf("%4d KiB, %2d buffers: writes %5.1f, reads %s %5.1f\n", (int)(p.bytes / 1024),
           (int)p.buffers, all / p.writing, how, all / p.reading);
    free(p.source), free(p.target), free(p.shared);
}

void test_rates(UNUSED uint64_t seed, double seconds)
{
    pair p = {.seconds = seconds / MEASURED};
    for (p.bytes = 32 * 1024; p.bytes <= 512 * 1024; p.bytes *= 2)
        for (p.buffers = 1; p.buffers <= 16; p.buffers *= 16) {
            p.copy = hbm_copy, measure(p, "in order");
            p.copy = hbm_copy_in_turn, measure(p, "in turn");
        }
}
