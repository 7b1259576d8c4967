/* A block is reused only after all stores of ranks that left. */
#include "core_test.h"

#include <pthread.h>

#define LEAVERS 4
#define ROUNDS 200

typedef struct {
    unsigned char marks[64];
    uint64_t block[LEAVERS]; /* not atomic: a late or unordered store is a race */
    uintptr_t claims[LEAVERS];
    uint64_t dead;
} scene;

typedef struct {
    scene *s;
    int rank;
} leaver;

static void *leave(void *argument)
{
    leaver *l = argument;
    l->s->block[l->rank] = 7;
    hbm_mark_left((uintptr_t)l->s->marks, l->rank);
    return NULL;
}

static void run(scene *s)
{
    pthread_t threads[LEAVERS];
    leaver leavers[LEAVERS];
    memset(s->marks, 0, sizeof s->marks);
    CHECK(!hbm_all_left((uintptr_t)s->marks, LEAVERS, s->claims, BOOT), "gone before it was there");
    for (int r = 0; r < LEAVERS; r++) {
        leavers[r] = (leaver){s, r};
        CHECK(!pthread_create(&threads[r], NULL, leave, &leavers[r]), "no thread");
    }
    while (!hbm_all_left((uintptr_t)s->marks, LEAVERS, s->claims, BOOT))
        ;
    for (int r = 0; r < LEAVERS; r++) {
        CHECK(s->block[r] == 7, "rank %d still writes", r);
        s->block[r] = 0;
    }
    for (int r = 0; r < LEAVERS; r++)
        pthread_join(threads[r], NULL);
}

void test_departures(UNUSED uint64_t seed, UNUSED double seconds)
{
    static uint64_t place;
    static scene s;
    hbm_claim *claim = hbm_acquire_claim((uintptr_t)&place, BOOT);
    CHECK(claim, "no claim");
    for (int r = 0; r < LEAVERS; r++)
        s.claims[r] = (uintptr_t)&place;
    for (int round = 0; round < ROUNDS; round++)
        run(&s);
    memset(s.marks, 0, sizeof s.marks);
    s.claims[2] = (uintptr_t)&s.dead; /* a rank that died does not mark that it left */
    for (int r = 0; r < LEAVERS; r++)
        if (r != 2)
            hbm_mark_left((uintptr_t)s.marks, r);
    CHECK(hbm_all_left((uintptr_t)s.marks, LEAVERS, s.claims, BOOT), "a dead rank is waited for");
    hbm_release_claim(claim);
}
