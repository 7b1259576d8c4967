/* Communicators of several hosts: threads are ranks, and queues are the wire between hosts. */
#include "core_test.h"

static const int pairs[] = {0, 1, 0, 1}, unequal[] = {0, 0, 1, 2, 1}, apart[] = {0, 1, 2, 3, 4, 5, 6},
                 two[] = {0, 1}, packed[] = {0, 0, 0, 1, 1, 1};

void test_hosts(uint64_t seed, double seconds)
{
    static const group groups[] = {{.size = 4, .host_of = pairs, .leaders = 2},
                                   {.size = 5, .host_of = unequal, .leaders = 1},
                                   {.size = 7, .host_of = apart, .leaders = 1},
                                   {.size = 2, .host_of = two, .leaders = 1},
                                   {.size = 6, .host_of = packed, .leaders = 2}};
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < sizeof groups / sizeof *groups || seconds_now() < end; round++) {
        uint64_t drawn = mixed(seed + round);
        group g = groups[round % (sizeof groups / sizeof *groups)];
        g.algorithm = (int)(drawn % 2 ? 0 : drawn / 2 % 6); /* HBM_AUTO and those of Allreduce */
        g.only_waits = drawn >> 8 & 1;
        g.crowded = 1;
        random_sequence(g, drawn);
    }
}

/* The last rank makes no call; another thread learns that, and rank 0 waits for it alone. */
static void body_lost(member *me)
{
    char entry = 0;
    hbm_call call = {.operation = HBM_BCAST, .dtype = HBM_UINT8, .count = 1, .root = me->g.size - 1,
                     .send = (uintptr_t)&entry, .recv = (uintptr_t)&entry};
    uint64_t begun, finished, waited;
    hbm_made_call made;
    if (me->rank == me->g.size - 1) {
        sleep_ms(20);
        return;
    }
    if (me->rank == 0)
        hbm_lose(me->comm);
    CHECK(hbm_run(me->comm, &call) == (me->rank ? HBM_PEER_DIED : HBM_LOST) || me->rank,
          "a wait for a rank that is lost");
    CHECK(hbm_run(me->comm, &call) != HBM_OK, "the loss is forgotten");
    hbm_calls(me->comm, &begun, &finished, &waited);
    CHECK(begun == 1 && !finished, "%d calls begun", (int)begun);
    CHECK(hbm_call_of(me->comm, 1, &made) && made.operation == HBM_BCAST && made.bytes == 1
              && made.root == call.root && !hbm_call_of(me->comm, 2, &made),
          "another call is on record");
}

void test_lost(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 2, .host_of = two, .leaders = 1}, body_lost, NULL);
}
