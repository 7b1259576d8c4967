/* Bytes that go from node to node: all are counted, whichever way a message takes.

   Odd ranks are on the other node. What the core counts is compared with the pairs of ranks of
   which one needs what the other gives: once for each, or once for a node that shares it. */
#include "core_test.h"

#define RANKS 5
#define ROOT 3

enum { SLOT = 64, LENT = 4096, LONG = 100000 }; /* bytes of a block, by the way that they take */

typedef struct {
    hbm_call call;
    int in_arena;
    uint64_t counted[RANKS];
} links;

static int is_from_root(int operation)
{
    return operation == HBM_BCAST || operation == HBM_SCATTER;
}

static int is_to_root(int operation) { return operation == HBM_GATHER || operation == HBM_REDUCE; }

/* Whether `to` needs what `from` gives. */
static int needs(int operation, int to, int from)
{
    return operation != HBM_BARRIER && !(is_from_root(operation) && from != ROOT)
           && !(is_to_root(operation) && to != ROOT);
}

static uint64_t readers(int operation)
{
    uint64_t pairs = 0;
    for (int to = 0; to < RANKS; to++)
        for (int from = 0; from < RANKS; from++)
            pairs += to % 2 != from % 2 && needs(operation, to, from);
    return pairs;
}

static void body(member *me)
{
    links *l = me->shared;
    hbm_call call = l->call;
    unsigned char *ordinary = calloc(2 * RANKS, LONG);
    CHECK(ordinary, "no memory");
    unsigned char *send = l->in_arena ? me->heap : ordinary;
    call.send = (uintptr_t)send;
    call.recv = (uintptr_t)(call.operation == HBM_BCAST ? send : send + RANKS * LONG);
    uint64_t before = hbm_link_bytes(me->comm);
    CHECK(hbm_run(me->comm, &call) == HBM_OK, "operation %d failed", call.operation);
    l->counted[me->rank] = hbm_link_bytes(me->comm) - before;
    call = (hbm_call){.operation = HBM_BARRIER};
    CHECK(hbm_run(me->comm, &call) == HBM_OK, "the last barrier failed");
    free(ordinary);
}

static void check(int operation, uint64_t block, int in_arena, int shares_cpus, uint64_t crossings)
{
    group g = {.size = RANKS, .oversubscribed = shares_cpus, .two_nodes = 1,
               .cache_bytes = 32 << 20};
    links l = {{.operation = (uint8_t)operation, .dtype = HBM_FLOAT32, .reduction = HBM_SUM,
                .root = ROOT, .count = operation == HBM_BARRIER ? 0 : block / 4},
               in_arena, {0}};
    uint64_t total = 0;
    as_ranks(g, body, &l);
    for (int r = 0; r < RANKS; r++)
        total += l.counted[r];
    CHECK(total == crossings * block,
          "operation %d of %llu bytes, %s in the arena, %s: %llu bytes counted, not %llu",
          operation, (unsigned long long)block, in_arena ? "all" : "none",
          shares_cpus ? "CPUs shared" : "a CPU each", (unsigned long long)total,
          (unsigned long long)(crossings * block));
}

void test_links(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    for (int shared = 0; shared < 2; shared++) {
        for (int operation = 0; operation < HBM_FOREIGN; operation++)
            for (int in_arena = 0; in_arena < 2; in_arena++)
                check(operation, SLOT, in_arena, shared, readers(operation));
        for (int in_arena = 0; in_arena < 2; in_arena++) {
            check(HBM_GATHER, LONG, in_arena, shared, readers(HBM_GATHER));
            check(HBM_SCATTER, LONG, in_arena, shared, readers(HBM_SCATTER));
            check(HBM_ALLTOALL, LONG, in_arena, shared, readers(HBM_ALLTOALL));
        }
        for (int blocks = 0; blocks < 2; blocks++) {
            int operation = blocks ? HBM_ALLGATHER : HBM_BCAST;
            uint64_t once = blocks ? RANKS : 1; /* each block, to the one other node */
            check(operation, LENT, 0, shared, readers(operation));
            check(operation, LENT, 1, shared, shared ? readers(operation) : once);
            check(operation, LONG, 0, shared, readers(operation));
            check(operation, LONG, 1, shared, once);
        }
    }
}
