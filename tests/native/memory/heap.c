/* The heap against a naive model of lines and steps. */
#include "heap_place.h"

#include <errno.h>

#define GRAIN 64u
#define GRAINS (STEPS * PAGE / GRAIN)
#define MOST 200

/* The expected state of the heap: one entry for each cache line, one for each step. */
typedef struct {
    char used[GRAINS]; /* allocated or parked */
    char populated[STEPS];
    struct { uint64_t start, end; int parked; } extents[MOST];
    int live;
    struct { uint64_t id, start, end; } holds[4];
    int held;
    uint64_t keep;
} model;

static int covered(const model *m, uint64_t start, uint64_t end)
{
    for (int i = 0; i < m->held; i++)
        if (m->holds[i].start < end && start < m->holds[i].end)
            return 1;
    return 0;
}

static void mark(model *m, uint64_t start, uint64_t end, char used)
{
    for (uint64_t g = start / GRAIN; g < end / GRAIN; g++)
        m->used[g] = used;
}

static int is_idle(const model *m, unsigned step)
{
    for (unsigned g = step * PAGE / GRAIN; g < (step + 1) * PAGE / GRAIN; g++)
        if (m->used[g])
            return 0;
    return m->populated[step];
}

static uint64_t idle_steps(const model *m)
{
    uint64_t idle = 0;
    for (unsigned s = 0; s < STEPS; s++)
        idle += (uint64_t)is_idle(m, s);
    return idle;
}

static void trim(model *m)
{
    for (unsigned s = STEPS; s-- > 0 && idle_steps(m) > m->keep / PAGE;)
        if (is_idle(m, s))
            m->populated[s] = 0;
}

static uint64_t lowest(const model *m, uint64_t bytes, uint64_t alignment)
{
    uint64_t lines = (bytes + GRAIN - 1) / GRAIN;
    for (uint64_t g = 0; g + lines <= GRAINS; g += alignment / GRAIN) {
        uint64_t n = 0;
        while (n < lines && !m->used[g + n])
            n++;
        if (n == lines)
            return g * GRAIN;
    }
    return HBM_NOWHERE;
}

static void try_take(hbm_heap *heap, model *m, dice *d)
{
    uint64_t bytes = 1 + roll(d, roll(d, 4) ? 700 : 20000), alignment = GRAIN << roll(d, 8);
    uint64_t expected = lowest(m, bytes, alignment);
    uint64_t at = hbm_heap_reserve(heap, bytes, alignment);
    CHECK(at == expected, "%lu of %lu taken at %lu, not %lu", bytes, alignment, at, expected);
    if (at == HBM_NOWHERE)
        return;
    bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    CHECK(hbm_heap_size(heap, at) == bytes, "another size is known");
    m->extents[m->live].start = at;
    m->extents[m->live].end = at + bytes;
    m->extents[m->live++].parked = 0;
    mark(m, at, at + bytes, 1);
}

static void drop(model *m, int i)
{
    mark(m, m->extents[i].start, m->extents[i].end, 0);
    m->extents[i] = m->extents[--m->live];
}

static void try_give(hbm_heap *heap, model *m, dice *d)
{
    int i = (int)roll(d, (uint64_t)m->live);
    int known = !m->extents[i].parked;
    uint64_t start = m->extents[i].start, end = m->extents[i].end;
    CHECK(end == start + GRAIN || hbm_heap_free(heap, start + GRAIN) == EINVAL,
          "gave back the inside of an extent");
    CHECK(hbm_heap_free(heap, start) == (known ? 0 : EINVAL), "given back wrongly");
    if (!known)
        return;
    if (covered(m, start, end)) {
        m->extents[i].parked = 1;
    } else {
        drop(m, i);
        trim(m);
    }
}

static void try_hold(hbm_heap *heap, model *m, dice *d)
{
    uint64_t start = roll(d, GRAINS) * GRAIN, end = start + (1 + roll(d, 60)) * GRAIN;
    end = end < STEPS * PAGE ? end : STEPS * PAGE;
    uint64_t id = hbm_heap_hold(heap, start, end);
    CHECK(id, "not held");
    for (uint64_t at = start; at < end; at += GRAIN)
        if (!m->used[at / GRAIN] && m->live < MOST) { /* the model has an extent for each line */
            m->extents[m->live].start = at;
            m->extents[m->live].end = at + GRAIN;
            m->extents[m->live++].parked = 1;
            m->used[at / GRAIN] = 1;
        }
    m->holds[m->held].id = id;
    m->holds[m->held].start = start;
    m->holds[m->held++].end = end;
}

static void try_release(hbm_heap *heap, model *m, dice *d)
{
    int i = (int)roll(d, (uint64_t)m->held);
    uint64_t id = m->holds[i].id;
    m->holds[i] = m->holds[--m->held];
    CHECK(!hbm_heap_release(heap, id), "not released");
    CHECK(hbm_heap_release(heap, id) == EINVAL, "released twice");
    for (int e = m->live - 1; e >= 0; e--)
        if (m->extents[e].parked && !covered(m, m->extents[e].start, m->extents[e].end))
            drop(m, e);
    trim(m);
}

static void try_populate(hbm_heap *heap, model *m, dice *d)
{
    uint64_t from = roll(d, STEPS), to = from + 1 + roll(d, 5);
    to = to < STEPS ? to : STEPS;
    CHECK(hbm_heap_populated(heap, from * PAGE + 1, to * PAGE) == EINVAL, "half a step");
    CHECK(!hbm_heap_populated(heap, from * PAGE, to * PAGE), "not populated");
    for (uint64_t s = from; s < to; s++)
        m->populated[s] = 1;
    trim(m);
}

static void compare(hbm_heap *heap, const model *m)
{
    hbm_heap_usage use;
    hbm_heap_use(heap, &use);
    uint64_t used = 0;
    for (unsigned g = 0; g < GRAINS; g++)
        used += (uint64_t)m->used[g];
    CHECK(use.taken + use.parked == used * GRAIN, "%lu used, not %lu", use.taken + use.parked,
          used * GRAIN);
    CHECK(use.idle == idle_steps(m) * PAGE, "%lu idle, not %lu", use.idle, idle_steps(m) * PAGE);
    for (unsigned s = 0; s < STEPS; s++) {
        uint64_t from = 0, to = 0;
        int missing = hbm_heap_missing(heap, s * PAGE, s * PAGE + 1, &from, &to);
        CHECK(missing == !m->populated[s], "step %u is thought %d", s, missing);
        CHECK(!missing || (from == s * PAGE && to == from + PAGE), "another step is missing");
    }
}

static void run_model(uint64_t seed)
{
    place p = new_place(STEPS * PAGE, PAGE);
    model m = {.keep = UINT64_MAX};
    dice d = {seed};
    for (int turn = 0; turn < 400; turn++) {
        uint64_t what = roll(&d, 20);
        if (what < 9 && m.live < MOST - 70)
            try_take(p.heap, &m, &d);
        else if (what < 16 && m.live)
            try_give(p.heap, &m, &d);
        else if (what == 16 && !m.held) /* one at a time: check_holds() tests overlaps */
            try_hold(p.heap, &m, &d);
        else if (what == 17 && m.held)
            try_release(p.heap, &m, &d);
        else if (what == 18)
            try_populate(p.heap, &m, &d);
        else if (what == 19) {
            m.keep = roll(&d, 12) * PAGE;
            CHECK(!hbm_heap_keep(p.heap, m.keep), "not kept");
            trim(&m);
        }
        compare(p.heap, &m);
    }
    end_place(p, STEPS * PAGE);
}

/* Overlapping ranges: memory in both is free when both are released. */
static void check_holds(void)
{
    place p = new_place(STEPS * PAGE, PAGE);
    uint64_t first = hbm_heap_reserve(p.heap, PAGE, PAGE);
    uint64_t second = hbm_heap_reserve(p.heap, PAGE, PAGE);
    uint64_t a = hbm_heap_hold(p.heap, 100, PAGE + 100), b = hbm_heap_hold(p.heap, 0, PAGE);
    uint64_t c = hbm_heap_hold(p.heap, 2 * PAGE, 3 * PAGE);
    CHECK(first == 0 && second == PAGE && a && b && c, "no extents, or not held");
    CHECK(!hbm_heap_hold(p.heap, 5, 5) && errno == EINVAL, "held nothing");
    CHECK(!hbm_heap_hold(p.heap, 0, STEPS * PAGE + 1) && errno == EINVAL, "held too much");
    CHECK(!hbm_heap_free(p.heap, first) && !hbm_heap_free(p.heap, second), "not given back");
    CHECK(hbm_heap_free(p.heap, first) == EINVAL, "given back twice");
    CHECK(hbm_heap_reserve(p.heap, PAGE, 64) == 3 * PAGE, "a held range was handed out");
    CHECK(!hbm_heap_release(p.heap, a), "not released");
    CHECK(hbm_heap_reserve(p.heap, PAGE, 64) == PAGE, "the second is not free");
    CHECK(hbm_heap_reserve(p.heap, PAGE, 64) == 4 * PAGE, "the first is free too early");
    CHECK(!hbm_heap_release(p.heap, b), "not released");
    CHECK(hbm_heap_reserve(p.heap, PAGE, 64) == 0, "the first is not free");
    CHECK(!hbm_heap_release(p.heap, c), "not released");
    CHECK(hbm_heap_reserve(p.heap, PAGE, 64) == 2 * PAGE, "what was free before is not");
    end_place(p, STEPS * PAGE);
}

/* After a failure, memory under missing steps goes back to the system, and no other memory. */
static void check_discard(void)
{
    place p = new_place(STEPS * PAGE, PAGE);
    memset(p.memory, 5, 4 * PAGE);
    CHECK(!hbm_heap_populated(p.heap, PAGE, 2 * PAGE), "not populated");
    CHECK(hbm_heap_discard(p.heap, 1, PAGE) == EINVAL, "half a step");
    CHECK(!hbm_heap_discard(p.heap, 0, 3 * PAGE), "not discarded");
    CHECK(bytes_held(p) == 2 * PAGE, "%lu bytes are held", bytes_held(p));
    CHECK(p.memory[PAGE] == 5 && p.memory[3 * PAGE] == 5 && !p.memory[2 * PAGE], "wrong steps");
    end_place(p, STEPS * PAGE);
}

void test_heap(uint64_t seed, double seconds)
{
    double until = seconds_now() + seconds / 2;
    check_holds();
    check_discard();
    for (uint64_t run = 0; run < 3 || seconds_now() < until; run++)
        run_model(seed + run);
}
