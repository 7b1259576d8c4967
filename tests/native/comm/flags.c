/* Flags: data and a number go round, a writer leaves, and operations advance during a wait. */
#include "core_test.h"

#define ROUNDS 300
#define WORDS 1000 /* of data that go with a number */

/* Each rank has its flag and its data at the beginning of its arrays. */
typedef struct {
    _Alignas(LINE) uint64_t flag;
    _Alignas(LINE) uint64_t data[WORDS];
} place;

static place *place_of(member *me, int rank)
{
    return (place *)me->comm->peers[rank].arrays;
}

static int await_rank(member *me, int rank, uint64_t value)
{
    return hbm_await_flag(me->comm, rank, (uintptr_t)&place_of(me, rank)->flag, value);
}

static int test_rank(member *me, int rank, uint64_t value)
{
    return hbm_test_flag(me->comm, rank, (uintptr_t)&place_of(me, rank)->flag, value);
}

static int raise_own(member *me, uint64_t value)
{
    return hbm_raise_flags(me->comm, (uintptr_t)&place_of(me, me->rank)->flag, 1, value);
}

/* Rank r writes after rank r - 1 has written, and rank 0 after the last one has read. */
static void body_round(member *me)
{
    int before = (me->rank + me->g.size - 1) % me->g.size;
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        uint64_t due = me->rank ? round : round - 1;
        CHECK(await_rank(me, before, due) == HBM_OK, "flag of rank %d failed", before);
        for (int i = 0; due && i < WORDS; i++)
            CHECK(place_of(me, before)->data[i] == due * (uint64_t)i, "round %lu is wrong",
                  (unsigned long)round);
        for (int i = 0; i < WORDS; i++)
            place_of(me, me->rank)->data[i] = round * (uint64_t)i;
        if (round % 100 == 0 && me->rank == 0)
            sleep_ms(3); /* the others sleep */
        CHECK(raise_own(me, round) == HBM_OK, "the flag was not raised");
    }
}

/* Rank 0 waits for a flag while the writer waits for an operation that both have started. */
static void body_operation(member *me)
{
    uint64_t sent = 1, sum = 0;
    hbm_call call = {.operation = HBM_ALLREDUCE, .dtype = HBM_UINT64, .count = 1,
                     .send = (uintptr_t)&sent, .recv = (uintptr_t)&sum};
    uint64_t operation = HBM_OK;
    if (me->rank == 0) {
        operation = hbm_start_once(me->comm, &call, 0);
        CHECK(await_rank(me, 1, 1) == HBM_OK, "the flag failed");
        CHECK(hbm_wait_once(operation, 0) == HBM_OK, "the operation failed");
    } else {
        sleep_ms(3);
        CHECK(hbm_run(me->comm, &call) == HBM_OK, "the call failed");
        if (me->rank == 1)
            CHECK(raise_own(me, 1) == HBM_OK, "the flag was not raised");
    }
    CHECK(sum == (uint64_t)me->g.size, "the sum is wrong");
}

static int asks(void) { return 1; }

static void body_refused(member *me)
{
    CHECK(hbm_await_flag(me->comm, me->g.size, 0, 1) == HBM_UNREADABLE, "there is no such rank");
    CHECK(hbm_await_flag(NULL, 0, 0, 1) == HBM_UNREADABLE
              && hbm_test_flag(NULL, 0, 0, 1) == HBM_UNREADABLE
              && hbm_raise_flags(NULL, 0, 1, 1) == HBM_UNREADABLE, "NULL is a communicator");
    if (me->rank == 0) {
        CHECK(raise_own(me, 1) == HBM_OK, "the flag was not raised");
        CHECK(hbm_check_rank(me->comm, 1) == HBM_OK, "a rank that is there was missed");
        CHECK(hbm_check_rank(me->comm, 2) == HBM_UNREADABLE, "there is no such rank");
        sleep_ms(150);
        hbm_close(me->comm);
        CHECK(raise_own(me, 2) == HBM_CLOSED, "a closed communicator raises flags");
        return;
    }
    hbm_on_wait(asks);
    CHECK(await_rank(me, 0, 2) == HBM_INTERRUPTED, "a signal did not end the wait");
    hbm_on_wait(NULL);
    CHECK(await_rank(me, 0, 1) == HBM_OK, "an interrupted wait ended the communicator");
    CHECK(test_rank(me, 0, 1) == HBM_OK && test_rank(me, 0, 2) == HBM_PENDING
              && hbm_test_flag(me->comm, 2, 0, 1) == HBM_UNREADABLE, "a test has another result than a wait");
    CHECK(await_rank(me, 0, 2) == HBM_CLOSED, "a wait for a rank that left goes on");
    CHECK(test_rank(me, 0, 2) == HBM_CLOSED && test_rank(me, 0, 1) == HBM_OK,
          "a test after a rank left has another result than a wait");
    CHECK(hbm_check_rank(me->comm, 0) == HBM_CLOSED, "a rank that left is taken to be there");
    CHECK(await_rank(me, 0, 1) == HBM_OK, "a flag raised before its writer left is lost");
}

void test_flags(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 2}, body_round, NULL);
    as_ranks((group){.size = 4, .oversubscribed = 1}, body_round, NULL);
    as_ranks((group){.size = 3}, body_operation, NULL);
    as_ranks((group){.size = 2}, body_refused, NULL);
}
