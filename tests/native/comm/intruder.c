/* A malicious rank: it takes part in all calls, and meanwhile writes random values into its own
   control block. The others get wrong data or an error, or wait until they are interrupted; they
   access nothing outside the memory that it shares. */
#include "core_test.h"

#include <pthread.h>
#include <sys/mman.h>

#define PRECIOUS_BYTES 4096
#define MOST_ENTRIES 20000
#define ROUND_SECONDS 0.3

typedef struct {
    control *block;
    uint64_t seed;
    unsigned lies; /* how many of the kinds below it tells: 5, or those about failures too */
    _Atomic int ends;
} scribbler;

/* Values that are out of range, nearly out of range, or in it. */
static uint64_t lie(dice *d)
{
    switch (roll(d, 5)) {
    case 0: return roll(d, 1u << 20);
    case 1: return HEAP_BYTES - roll(d, 4096);
    case 2: return UINT64_MAX - roll(d, 1u << 20);
    case 3: return 1ull << roll(d, 64);
    default: return 0;
    }
}

/* A data race on purpose, so this test does not run under ThreadSanitizer. */
static void *scribble(void *argument)
{
    scribbler *l = argument;
    dice d = {l->seed};
    while (!atomic_load(&l->ends)) {
        post *p = &l->block->posts[roll(&d, RECORDS)][roll(&d, SLOTS)];
        past_call *e = &l->block->history[roll(&d, HISTORY)];
        switch (roll(&d, l->lies)) {
        case 0: p->send = lie(&d); break;
        case 1: p->recv = lie(&d); break;
        case 2: p->bytes = lie(&d); break;
        case 3: p->flags = (uint32_t)lie(&d); break;
        case 4: atomic_store(&l->block->staging.value, lie(&d)); break;
        case 5: atomic_store(&l->block->failed, !roll(&d, 8)); break;
        case 6: l->block->failure.status = (int32_t)roll(&d, HBM_LAST_STATUS + 2); break;
        case 7: l->block->failure.rank = (int32_t)lie(&d); break;
        case 8: l->block->failure.other = (int32_t)lie(&d); break;
        default: atomic_store(roll(&d, 2) ? &e->sequence : &e->what, lie(&d)); break;
        }
        if (!roll(&d, 64))
            sleep_ms(0.01);
    }
    return NULL;
}

static double round_ends;

static int is_over(void) { return seconds_now() > round_ends; }

static hbm_call draw(dice *d, member *me, unsigned char *memory)
{
    static const uint8_t operations[] = {HBM_BCAST, HBM_GATHER, HBM_SCATTER, HBM_ALLGATHER,
                                         HBM_ALLTOALL, HBM_REDUCE, HBM_ALLREDUCE, HBM_SCAN,
                                         HBM_REDUCE_SCATTER_BLOCK};
    uint64_t count = roll(d, 2) ? roll(d, 30) : roll(d, MOST_ENTRIES);
    uint64_t half = 4 * FEW_RANKS * MOST_ENTRIES;
    hbm_call call = {.operation = operations[roll(d, sizeof operations)], .dtype = HBM_INT32,
                     .count = count, .root = (int32_t)roll(d, (uint64_t)me->g.size)};
    unsigned char *at = roll(d, 2) ? memory : me->heap + PRECIOUS_BYTES;
    call.send = (uintptr_t)at;
    call.recv = call.operation == HBM_BCAST ? call.send : (uintptr_t)at + half;
    return call;
}

static void body(member *me)
{
    uint64_t seed = *(uint64_t *)me->shared;
    int is_intruder = me->rank == me->g.size - 1, status = HBM_OK;
    unsigned char *memory = calloc(2, 4 * FEW_RANKS * MOST_ENTRIES);
    CHECK(memory, "no memory");
    memset(me->heap, 0xA5, PRECIOUS_BYTES);
    scribbler l = {me->comm->own, seed, seed & 1 ? 10 : 5, 0};
    pthread_t liar;
    dice d = {seed};
    if (is_intruder) { /* it may name all that it shares, populated or not */
        const peer *own = &me->comm->peers[me->rank];
        CHECK(!mprotect(own->ordinary, own->ordinary_bytes, PROT_READ | PROT_WRITE), "protected");
        CHECK(!pthread_create(&liar, NULL, scribble, &l), "no thread");
    }
    for (int i = 0; i < 200 && !status; i++) {
        hbm_call call = draw(&d, me, memory);
        status = hbm_run(me->comm, &call);
    }
    if (status && !is_intruder) {
        hbm_failure why;
        unsigned size = (unsigned)me->g.size;
        CHECK(hbm_failure_of(me->comm, &why), "status %d has no record", status);
        CHECK((unsigned)why.rank < size && (unsigned)why.other < size, "ranks %d and %d", why.rank,
              why.other);
    }
    hbm_close(me->comm); /* so that no rank waits for it */
    if (is_intruder) {
        atomic_store(&l.ends, 1);
        pthread_join(liar, NULL);
    }
    for (int i = 0; i < PRECIOUS_BYTES; i++)
        CHECK(me->heap[i] == 0xA5 || is_intruder, "rank %d lost byte %d", me->rank, i);
    free(memory);
}

void test_intruder(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    hbm_on_wait(is_over);
    for (uint64_t round = 0; round < 8 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        group g = {.size = 2 + (int)(round % (FEW_RANKS - 1)), .oversubscribed = round & 1,
                   .machine = round & 2 ? odd_and_even : NULL, .crowded = 1};
        round_ends = seconds_now() + ROUND_SECONDS;
        as_ranks(g, body, &drawn_from);
    }
}
