/* The cost of calls on machines with many cores: lines read from other ranks' control blocks, bytes
   that each rank reduces, bytes between nodes, and the longest chain of ranks that wait for each
   other.

   The core counts them where it is compiled with HBM_COUNTERS. They are compared with formulas in
   the number of ranks and of levels of their groups, not with times. Prints a table. */
#include "core_test.h"

#include <pthread.h>

#define CALLS 32 /* of each kind: the mean includes costs that few calls have */

#ifdef HBM_COUNTERS

typedef struct {
    hbm_call call;
    double lines[MOST_RANKS], reduced[MOST_RANKS], data[MOST_RANKS];
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
    k->reduced[me->rank] = (double)c->count.reduced_bytes / CALLS;
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
    double largest = 0;
    for (int i = 0; i < n; i++)
        largest = of[i] > largest ? of[i] : largest;
    return largest;
}

static double sum(const double *of, int n)
{
    double total = 0;
    for (int i = 0; i < n; i++)
        total += of[i];
    return total;
}

static uint64_t all_crossed(const costs *k, int n)
{
    uint64_t bytes = 0;
    for (int i = 0; i < n; i++)
        bytes += k->crossed[i];
    return bytes;
}

/* The groups that all ranks build, for the formulas. */
typedef struct {
    hbm_groups g;
    int siblings; /* the most siblings of a rank in one exchange */
} shape;

static shape shape_of(const described *m, int fan_in)
{
    hbm_peer peers[MOST_RANKS];
    shape s = {.siblings = 0};
    describe(m, m->cores, peers);
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
    printf("%-18s op %2d %8llu B: lines/rank %6.2f (most %6.2f), hops %2llu, crossed %9llu\n",
           m->name, operation, (unsigned long long)bytes, sum(k.lines, m->cores) / m->cores,
           most(k.lines, m->cores), (unsigned long long)k.hops,
           (unsigned long long)all_crossed(&k, m->cores));
    return k;
}

#define ANY UINT64_MAX

typedef struct {
    uint64_t least_hops, most_hops, crossed; /* crossed: exactly these bytes */
    double lines;                            /* at most these, on any rank */
} limits;

static costs check_call(const described *m, int operation, uint64_t bytes, limits l)
{
    costs k = measure(m, operation, bytes);
    uint64_t crossed = all_crossed(&k, m->cores);
    double lines = most(k.lines, m->cores);
    CHECK(k.hops >= l.least_hops && k.hops <= l.most_hops, "%s: operation %d takes %d hops", m->name,
          operation, (int)k.hops);
    CHECK(l.crossed == ANY || crossed == l.crossed, "%s: operation %d crosses %llu bytes, not %llu",
          m->name, operation, (unsigned long long)crossed, (unsigned long long)l.crossed);
    CHECK(lines <= l.lines, "%s: operation %d reads %.1f lines", m->name, operation, lines);
    return k;
}

/* Bcast: each rank reads its parent, and now and then whether its children have finished. */
static void check_bcast_lines(const described *m, const costs *k, const hbm_peer *peers)
{
    double slack = 1.0 / (SLOTS - 1);
    int n = m->cores, root = n / 3;
    for (int r = 0; r < n; r++) {
        hbm_groups own;
        CHECK(hbm_group_ranks(&own, r, n, peers, 8), "no memory");
        const hbm_tree *t = hbm_tree_of(&own, root);
        double expected = (r != root) + t->child_count * slack;
        CHECK(k->lines[r] <= expected + 0.5 * t->child_count,
              "%s: Bcast on rank %d reads %.2f lines", m->name, r, k->lines[r]);
        CHECK(t->child_count || k->lines[r] == 1, "%s: a leaf of Bcast reads %.2f lines", m->name,
              k->lines[r]);
        hbm_ungroup(&own);
    }
}

static void check_machine(const described *m)
{
    shape s = shape_of(m, 8);
    hbm_peer peers[MOST_RANKS];
    int n = m->cores, root = n / 3;
    uint64_t levels = (uint64_t)s.g.levels, others = (uint64_t)(s.g.nodes.count - 1);
    uint64_t ranks = (uint64_t)n;
    double siblings = s.siblings + 1;
    CHECK(s.siblings <= 8 * s.g.levels, "%s: %d siblings", m->name, s.siblings);
    check_call(m, HBM_BARRIER, 0, (limits){levels, levels, ANY, siblings});
    costs k = check_call(m, HBM_BCAST, 8, (limits){0, levels, 8 * others, 1e9});
    describe(m, n, peers);
    check_bcast_lines(m, &k, peers);
    check_call(m, HBM_REDUCE, 8, (limits){0, levels, 8 * others, 1e9});
    k = check_call(m, HBM_GATHER, 8, (limits){1, 1, ANY, 1e9});
    for (int r = 0; r < n; r++)
        CHECK(r == root || k.lines[r] <= 1, "%s: a leaf of Gather reads %.2f lines", m->name,
              k.lines[r]); /* a leaf that is far ahead reads the root's count */
    check_call(m, HBM_ALLREDUCE, 8, (limits){levels, levels, ANY, siblings});
    check_call(m, HBM_ALLGATHER, 8, (limits){2, 2, 8 * ranks * others, 1e9});
    for (uint64_t bytes = 8192; bytes <= 262144; bytes *= 8) {
        uint64_t crossed = others && bytes * ranks >= 16384 ? 2 * bytes * others : ANY;
        k = check_call(m, HBM_ALLREDUCE, bytes, (limits){0, 5 * levels, crossed, 1e9});
        double share = sum(k.reduced, n) / n, line = (double)(LINE * n);
        CHECK(most(k.reduced, n) <= 1.1 * share + 2 * line, "%s: a rank reduces %.0f of %.0f bytes",
              m->name, most(k.reduced, n), share);
    }
    check_call(m, HBM_BCAST, 65536, (limits){0, ANY, 65536 * others, 1e9});
    check_call(m, HBM_ALLGATHER, 16384, (limits){0, ANY, 16384 * ranks * others, 1e9});
    hbm_ungroup(&s.g);
}

void test_costs(UNUSED uint64_t seed, UNUSED double seconds)
{
    for (int m = 0; m < machine_count; m++)
        check_machine(&machines[m]);
}

#endif
