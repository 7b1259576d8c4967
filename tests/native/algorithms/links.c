/* Bytes between nodes: all are counted, and none crosses more often than it must.

   Odd ranks are on the other node. The core's count is compared with what the operation needs: one
   crossing for each pair of ranks of which one needs data of the other, or one for a node if its
   ranks share the data. */
#include "core_test.h"

#define RANKS 5
#define ROOT 3
#define NODES 2

enum { SHORT = 64, MEDIUM = 4096, LONG = 100032 }; /* bytes of a block */

typedef struct {
    hbm_call call;
    int in_arena;
    uint64_t counted[RANKS];
} links;

static const uint8_t operations[] = {HBM_BARRIER,   HBM_BCAST,  HBM_GATHER,    HBM_SCATTER,
                                     HBM_ALLGATHER, HBM_ALLTOALL, HBM_REDUCE, HBM_ALLREDUCE,
                                     HBM_REDUCE_SCATTER_BLOCK};

static int is_from_root(int operation)
{
    return operation == HBM_BCAST || operation == HBM_SCATTER;
}

static int is_to_root(int operation) { return operation == HBM_GATHER || operation == HBM_REDUCE; }

/* Whether `to` needs data of `from`. */
static int needs(int operation, int to, int from)
{
    return operation != HBM_BARRIER && !(is_from_root(operation) && from != ROOT)
           && !(is_to_root(operation) && to != ROOT);
}

static uint64_t pairs(int operation)
{
    uint64_t n = 0;
    for (int to = 0; to < RANKS; to++)
        for (int from = 0; from < RANKS; from++)
            n += to % NODES != from % NODES && needs(operation, to, from);
    return n;
}

/* Crossings of short messages, which follow the groups. */
static uint64_t short_ones(int operation)
{
    switch (operation) {
    case HBM_BCAST: return NODES - 1;                /* to the other node's first rank */
    case HBM_REDUCE: return NODES - 1;               /* a node's partial result */
    case HBM_ALLREDUCE: return RANKS * (NODES - 1);  /* each rank reads the other node's */
    case HBM_ALLGATHER: return RANKS * (NODES - 1);  /* each block, to each other node */
    default: return pairs(operation);
    }
}

/* Crossings where all arrays are in the arena. */
static uint64_t by_nodes(int operation)
{
    switch (operation) {
    case HBM_ALLREDUCE: return 2 * (NODES - 1);
    case HBM_REDUCE_SCATTER_BLOCK: return RANKS * (NODES - 1);
    default: return short_ones(operation);
    }
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
    group g = {.size = RANKS, .oversubscribed = shares_cpus, .machine = odd_and_even,
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

void test_links(UNUSED uint64_t seed, UNUSED double seconds)
{
    for (int shared = 0; shared < 2; shared++)
        for (size_t i = 0; i < sizeof operations; i++) {
            int operation = operations[i], is_reduce = operation == HBM_REDUCE;
            for (int in_arena = 0; in_arena < 2; in_arena++)
                check(operation, SHORT, in_arena, shared, short_ones(operation));
            if (operation == HBM_ALLGATHER || operation == HBM_BCAST) {
                check(operation, MEDIUM, 0, shared,
                      shared ? short_ones(operation) : pairs(operation));
                check(operation, MEDIUM, 1, shared, short_ones(operation));
            }
            if (!is_reduce && operation != HBM_ALLREDUCE)
                check(operation, LONG, 0, shared, pairs(operation));
            if (!is_reduce)
                check(operation, LONG, 1, shared, by_nodes(operation));
        }
}
