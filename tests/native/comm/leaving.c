/* What a rank that leaves must not take away: its staging buffers, and memory that is held. */
#include "core_test.h"

#include <pthread.h>

#define BYTES 300000 /* more than a piece */

static hbm_call staged(void *send, void *recv)
{
    return (hbm_call){.operation = HBM_ALLREDUCE, .dtype = HBM_INT8, .count = BYTES,
                      .send = (uintptr_t)send, .recv = (uintptr_t)recv};
}

/* A heap gives its lowest free extent first: it would give the staging buffers again. */
static void body_leaving(member *me)
{
    void *memory = calloc(2, BYTES);
    CHECK(memory, "no memory");
    hbm_call call = staged(memory, (char *)memory + BYTES);
    CHECK(hbm_run(me->comm, &call) == HBM_OK, "the call failed");
    uint64_t staging = hbm_staging(me->comm), bytes = hbm_heap_size(me->comm->heap, staging);
    CHECK(staging != HBM_NOWHERE && bytes >= STAGING_BYTES, "there are no staging buffers");
    if (me->rank == 0) {
        hbm_close(me->comm);
        CHECK(hbm_staging(me->comm) == staging, "nobody can free the staging buffers any more");
        uint64_t other = hbm_heap_reserve(me->comm->heap, PAGE, PAGE);
        CHECK(other == HBM_NOWHERE || other >= staging + bytes || other + PAGE <= staging,
              "the staging buffers are free while a peer may read them");
        CHECK(!hbm_heap_free(me->comm->heap, staging), "the staging buffers cannot be freed");
    }
    free(memory);
}

void test_leaving(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 2}, body_leaving, NULL);
    as_ranks((group){.size = 3, .oversubscribed = 1}, body_leaving, NULL);
}

/* ---- memory that peers may still write into ---- */

static void *release(void *comm)
{
    hbm_release_held(comm);
    return NULL;
}

static int ends(void) { return 1; }

/* Rank 0 is interrupted: what it receives is held, and then released by two threads at once. */
static void body_held(member *me)
{
    pthread_t threads[2];
    hbm_heap_usage usage;
    hbm_call call = {.operation = HBM_BCAST, .dtype = HBM_INT8, .root = 1, .count = BYTES};
    if (me->rank)
        return;
    hbm_comm *c = me->comm;
    c->arrays = hbm_heap_new((uintptr_t)me->heap, HEAP_BYTES, PAGE);
    uint64_t at = hbm_heap_reserve(c->arrays, BYTES, PAGE);
    call.send = call.recv = (uintptr_t)me->heap + at;
    hbm_on_wait(ends);
    CHECK(hbm_run(c, &call) == HBM_INTERRUPTED, "the call was not interrupted");
    hbm_on_wait(NULL);
    CHECK(hbm_has_held(c) && !hbm_heap_free(c->arrays, at), "nothing is held");
    hbm_heap_use(c->arrays, &usage);
    CHECK(usage.parked >= BYTES, "held memory is free");
    for (int t = 0; t < 2; t++)
        CHECK(!pthread_create(&threads[t], NULL, release, c), "no thread");
    for (int t = 0; t < 2; t++)
        pthread_join(threads[t], NULL);
    hbm_heap_use(c->arrays, &usage);
    CHECK(!usage.parked && !usage.taken && !hbm_has_held(c), "released memory is held");
    hbm_heap_delete(c->arrays);
    c->arrays = NULL;
}

void test_held(UNUSED uint64_t seed, UNUSED double seconds)
{
    for (int round = 0; round < 20; round++)
        as_ranks((group){.size = 2, .oversubscribed = 1}, body_held, NULL);
}
