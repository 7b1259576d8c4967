/* What calls cost on machines with many cores: lines read from other ranks' control blocks, bytes that
   each rank folds, bytes between nodes, and the longest chain of ranks that wait for each other.

   Compared with formulas in the number of ranks and of levels of their groups, not with times:
   counted by the core itself where it is compiled with HBM_COUNTERS. Prints a table. */
#include "core_test.h"

#include <pthread.h>

#define CALLS 32 /* of each kind: what is paid once in many calls is in the mean */

#ifndef HBM_COUNTERS

void test_costs(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    CHECK(0, "compile with HBM_COUNTERS");
}

#else

typedef struct {
    hbm_call call;
    double lines[MOST_RANKS], folded[MOST_RANKS], data[MOST_RANKS];
    uint64_t crossed[MOST_RANKS], hops;
} costs;

static void body(member *me)
{
    costs *k = me->shared;
    hbm_comm *c = me->comm;
    hbm_call call = k->call, barrier = {.operation = HBM_BARRIER};
    call.send = (uintptr_t)me->heap;
    call.recv = call.operation == HBM_BCAST ? call.send : (uintptr_t)me->heap + HEAP_BYTES / 2;
    CHECK(hbm_run(c, &barrier) == HBM_OK, "the barrier failed");
    for (int i = 0; i < 2 * SLOTS; i++)
        CHECK(hbm_run(c, &call) == HBM_OK, "operation %d failed", call.operation);
    uint64_t crossed = c->link_bytes;
    memset(&c->count, 0, sizeof c->count);
    for (int i = 0; i < CALLS; i++)
        CHECK(hbm_run(c, &call) == HBM_OK, "operation %d failed", call.operation);
    k->lines[me->rank] = (double)(c->count.posts + c->count.words) / CALLS;
    k->folded[me->rank] = (double)c->count.folded_bytes / CALLS;
    k->data[me->rank] = (double)c->count.data_lines / CALLS;
    k->crossed[me->rank] = (c->link_bytes - crossed) / CALLS;
    uint64_t hops = c->count.most_hops;
    CHECK(hbm_run(c, &barrier) == HBM_OK, "the barrier failed");
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    k->hops = hops > k->hops ? hops : k->hops;
    pthread_mutex_unlock(&lock);
}

static double most(const double *of, int n)
{
    double found = 0;
    for (int i = 0; i < n; i++)
        found = of[i] > found ? of[i] : found;
    return found;
}

static double sum(const double *of, int n)
{
    double found = 0;
    for (int i = 0; i < n; i++)
        found += of[i];
    return found;
}

static uint64_t all_crossed(const costs *k, int n)
{
    uint64_t found = 0;
    for (int i = 0; i < n; i++)
        found += k->crossed[i];
    return found;
}

/* Groups as all ranks build them, for what the formulas need to know. */
typedef struct {
    hbm_groups g;
    int siblings; /* most that a rank meets in one exchange */
} shape;

static shape shape_of(const described *m, int fan_in)
{
    hbm_peer peers[MOST_RANKS];
    shape s = {.siblings = 0};
    for (int r = 0; r < m->cores; r++) {
        spot at = m->machine(r, m->cores);
        peers[r] = (hbm_peer){.package = at.package, .node = at.node, .cache = at.cache};
    }
    for (int r = 0; r < m->cores; r++) {
        hbm_groups own;
        int n = 0;
        CHECK(hbm_group_ranks(&own, r, m->cores, peers, fan_in), "no memory");
        for (int i = 0; i < own.step_count; i++)
            n += own.steps[i].mate_count;
        s.siblings = n > s.siblings ? n : s.siblings;
        hbm_ungroup(&own);
    }
    CHECK(hbm_group_ranks(&s.g, 0, m->cores, peers, fan_in), "no memory");
    return s;
}

static costs measure(const described *m, int operation, uint64_t bytes)
{
    static costs k;
    memset(&k, 0, sizeof k);
    k.call = (hbm_call){.operation = (uint8_t)operation, .dtype = HBM_FLOAT32, .reduction = HBM_SUM,
                        .root = m->cores / 3, .count = bytes / 4};
    group g = {.size = m->cores, .machine = m->machine, .crowded = 1, .cache_bytes = 1u << 30};
    as_ranks(g, body, &k);
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("%-18s op %2d %8llu B: lines/rank %6.2f (most %6.2f), hops %2llu, crossed %9llu\n", m->name,
           operation, (unsigned long long)bytes, sum(k.lines, m->cores) / m->cores,
           most(k.lines, m->cores), (unsigned long long)k.hops,
           (unsigned long long)all_crossed(&k, m->cores));
    return k;
}

static void check_machine(const described *m)
{
    shape s = shape_of(m, 8);
    int n = m->cores, levels = s.g.levels, nodes = s.g.nodes.count, root = n / 3;
    uint64_t others = (uint64_t)(nodes - 1);
    /* readers of a rank's posts are asked once in a while if they are done */
    double slack = 1.0 / (SLOTS - 1);

    costs k = measure(m, HBM_BARRIER, 0);
    CHECK(most(k.lines, n) <= s.siblings + 1, "%s: Barrier reads %.1f lines", m->name, most(k.lines, n));
    CHECK(s.siblings <= 8 * levels, "%s: %d siblings", m->name, s.siblings);
    CHECK(k.hops == (uint64_t)levels, "%s: Barrier takes %d hops", m->name, (int)k.hops);

    k = measure(m, HBM_BCAST, 8);
    for (int r = 0; r < n; r++) {
        const hbm_tree *t;
        hbm_peer peers[MOST_RANKS];
        hbm_groups own;
        for (int i = 0; i < n; i++) {
            spot at = m->machine(i, n);
            peers[i] = (hbm_peer){.package = at.package, .node = at.node, .cache = at.cache};
        }
        CHECK(hbm_group_ranks(&own, r, n, peers, 8), "no memory");
        t = hbm_tree_of(&own, root);
        double expected = (r != root) + t->child_count * slack;
        CHECK(k.lines[r] <= expected + 0.5 * t->child_count, "%s: Bcast on rank %d reads %.2f lines",
              m->name, r, k.lines[r]);
        CHECK(t->child_count || k.lines[r] == 1, "%s: a leaf of Bcast reads %.2f lines", m->name,
              k.lines[r]);
        hbm_ungroup(&own);
    }
    CHECK(k.hops <= (uint64_t)levels, "%s: Bcast takes %d hops", m->name, (int)k.hops);
    CHECK(all_crossed(&k, n) == 8 * others, "%s: Bcast crosses %llu bytes", m->name,
          (unsigned long long)all_crossed(&k, n));

    k = measure(m, HBM_REDUCE, 8);
    CHECK(k.hops <= (uint64_t)levels, "%s: Reduce takes %d hops", m->name, (int)k.hops);
    CHECK(all_crossed(&k, n) == 8 * others, "%s: Reduce crosses too much", m->name);

    k = measure(m, HBM_GATHER, 8);
    CHECK(k.hops == 1, "%s: Gather takes %d hops", m->name, (int)k.hops);
    for (int r = 0; r < n; r++)
        CHECK(r == root || k.lines[r] <= 1, "%s: a leaf of Gather reads %.2f lines", m->name,
              k.lines[r]); /* the root's count of calls, where the leaf is as far ahead as it may be */

    k = measure(m, HBM_ALLREDUCE, 8);
    CHECK(most(k.lines, n) <= s.siblings + 1, "%s: Allreduce reads %.1f lines", m->name,
          most(k.lines, n));
    CHECK(k.hops == (uint64_t)levels, "%s: Allreduce takes %d hops", m->name, (int)k.hops);

    k = measure(m, HBM_ALLGATHER, 8);
    CHECK(all_crossed(&k, n) == 8 * (uint64_t)n * others, "%s: Allgather crosses too much", m->name);
    CHECK(k.hops == 2, "%s: Allgather takes %d hops", m->name, (int)k.hops);

    for (uint64_t bytes = 8192; bytes <= 262144; bytes *= 8) {
        k = measure(m, HBM_ALLREDUCE, bytes);
        double share = sum(k.folded, n) / n, line = (double)(LINE * n);
        CHECK(most(k.folded, n) <= 1.1 * share + 2 * line, "%s: a rank folds %.0f of %.0f bytes",
              m->name, most(k.folded, n), share);
        if (nodes > 1 && bytes * (uint64_t)n >= 16384)
            CHECK(all_crossed(&k, n) == 2 * bytes * others, "%s: Allreduce crosses %llu bytes", m->name,
                  (unsigned long long)all_crossed(&k, n));
        CHECK(k.hops <= (uint64_t)(5 * levels), "%s: Allreduce takes %d hops", m->name, (int)k.hops);
    }
    k = measure(m, HBM_BCAST, 65536);
    CHECK(all_crossed(&k, n) == 65536 * others, "%s: Bcast crosses too much", m->name);
    k = measure(m, HBM_ALLGATHER, 16384);
    CHECK(all_crossed(&k, n) == 16384 * (uint64_t)n * others, "%s: Allgather crosses too much", m->name);
    hbm_ungroup(&s.g);
}

void test_costs(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    for (int m = 0; m < machine_count; m++)
        check_machine(&machines[m]);
}

#endif
