/* The heap against a naive model, with many threads at once, and after a fork. */
#define _GNU_SOURCE
#include "core_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096u
#define STEPS 40u
#define GRAIN 64u
#define GRAINS (STEPS * PAGE / GRAIN)
#define MOST 200
#define THREADS 4
#define PARTS 8

typedef struct {
    hbm_heap *heap;
    unsigned char *memory;
    int file;
} place;

static place new_place(uint64_t bytes, uint64_t step)
{
    place p = {.file = memfd_create("heap", MFD_CLOEXEC)};
    CHECK(p.file >= 0 && !ftruncate(p.file, (off_t)bytes), "no memory");
    p.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p.file, 0);
    CHECK(p.memory != MAP_FAILED, "no mapping");
    p.heap = hbm_heap_new((uintptr_t)p.memory, bytes, step);
    CHECK(p.heap, "no heap");
    return p;
}

static void end_place(place p, uint64_t bytes)
{
    hbm_heap_free(p.heap);
    munmap(p.memory, bytes);
    close(p.file);
}

static uint64_t bytes_held(place p)
{
    struct stat state;
    CHECK(!fstat(p.file, &state), "no state");
    return (uint64_t)state.st_blocks * 512;
}

/* What the heap should know: one entry for each cache line, one for each step. */
typedef struct {
    char used[GRAINS]; /* taken, or parked */
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
    uint64_t found = 0;
    for (unsigned s = 0; s < STEPS; s++)
        found += (uint64_t)is_idle(m, s);
    return found;
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
    uint64_t expected = lowest(m, bytes, alignment), found = hbm_heap_take(heap, bytes, alignment);
    CHECK(found == expected, "%lu of %lu taken at %lu, not %lu", bytes, alignment, found, expected);
    if (found == HBM_NOWHERE)
        return;
    bytes = (bytes + GRAIN - 1) / GRAIN * GRAIN;
    CHECK(hbm_heap_size(heap, found) == bytes, "another size is known");
    m->extents[m->live].start = found;
    m->extents[m->live].end = found + bytes;
    m->extents[m->live++].parked = 0;
    mark(m, found, found + bytes, 1);
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
    CHECK(end == start + GRAIN || hbm_heap_give(heap, start + GRAIN) == EINVAL,
          "gave back the inside of an extent");
    CHECK(hbm_heap_give(heap, start) == (known ? 0 : EINVAL), "given back wrongly");
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
    CHECK(use.taken + use.parked == used * GRAIN, "%lu used, not %lu", use.taken + use.parked, used);
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
        else if (what == 16 && !m.held) /* one at a time: overlaps have a test of their own */
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

/* Overlapping ranges: what lies in both is free when both are released. */
static void check_holds(void)
{
    place p = new_place(STEPS * PAGE, PAGE);
    uint64_t first = hbm_heap_take(p.heap, PAGE, PAGE), second = hbm_heap_take(p.heap, PAGE, PAGE);
    uint64_t a = hbm_heap_hold(p.heap, 100, PAGE + 100), b = hbm_heap_hold(p.heap, 0, PAGE);
    uint64_t c = hbm_heap_hold(p.heap, 2 * PAGE, 3 * PAGE);
    CHECK(first == 0 && second == PAGE && a && b && c, "no extents, or not held");
    CHECK(!hbm_heap_hold(p.heap, 5, 5) && errno == EINVAL, "held nothing");
    CHECK(!hbm_heap_hold(p.heap, 0, STEPS * PAGE + 1) && errno == EINVAL, "held too much");
    CHECK(!hbm_heap_give(p.heap, first) && !hbm_heap_give(p.heap, second), "not given back");
    CHECK(hbm_heap_give(p.heap, first) == EINVAL, "given back twice");
    CHECK(hbm_heap_take(p.heap, PAGE, 64) == 3 * PAGE, "a held range was handed out");
    CHECK(!hbm_heap_release(p.heap, a), "not released");
    CHECK(hbm_heap_take(p.heap, PAGE, 64) == PAGE, "the second is not free");
    CHECK(hbm_heap_take(p.heap, PAGE, 64) == 4 * PAGE, "the first is free too early");
    CHECK(!hbm_heap_release(p.heap, b), "not released");
    CHECK(hbm_heap_take(p.heap, PAGE, 64) == 0, "the first is not free");
    CHECK(!hbm_heap_release(p.heap, c), "not released");
    CHECK(hbm_heap_take(p.heap, PAGE, 64) == 2 * PAGE, "what was free before is not");
    end_place(p, STEPS * PAGE);
}

/* Who fails to populate a range gives back what is under its missing steps alone. */
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

typedef struct {
    place p;
    pthread_mutex_t populating;
    _Atomic int next;
    double until;
    uint64_t seed;
} crowd;

/* As Python does: one at a time, and only what is missing. */
static int populate(void *context, uint64_t start, uint64_t end)
{
    crowd *c = context;
    uint64_t from, to;
    int problem = 0;
    pthread_mutex_lock(&c->populating);
    while (!problem && hbm_heap_missing(c->p.heap, start, end, &from, &to)) {
        problem = madvise(c->p.memory + from, to - from, 23 /* MADV_POPULATE_WRITE */);
        if (problem && errno == EINVAL) /* before Linux 5.14 */
            problem = 0;
        problem |= mixed(from + end) % 8 == 0; /* memory is short at times */
        if (problem)
            hbm_heap_discard(c->p.heap, from, to);
        else
            hbm_heap_populated(c->p.heap, from, to);
    }
    pthread_mutex_unlock(&c->populating);
    return problem;
}

static void *run_thread(void *argument)
{
    crowd *c = argument;
    int me = atomic_fetch_add(&c->next, 1);
    dice d = {c->seed + (uint64_t)me};
    struct { uint64_t start, bytes; unsigned char fill; } parts[PARTS] = {0};
    for (uint64_t turn = 0; turn % 64 || seconds_now() < c->until; turn++) {
        int i = (int)roll(&d, PARTS);
        unsigned char *at = c->p.memory + parts[i].start;
        if (parts[i].bytes) {
            for (uint64_t b = 0; b < parts[i].bytes; b += 61)
                CHECK(at[b] == parts[i].fill, "another's byte, or none, at %lu", b);
            CHECK(!hbm_heap_give(c->p.heap, parts[i].start), "not given back");
            parts[i].bytes = 0;
            continue;
        }
        uint64_t bytes = 1 + roll(&d, roll(&d, 3) ? 2000 : 5 * PAGE);
        uint64_t start = hbm_heap_get(c->p.heap, bytes, roll(&d, 2) ? 64 : PAGE);
        if (start == HBM_NOWHERE)
            continue;
        parts[i].start = start;
        parts[i].bytes = bytes;
        parts[i].fill = (unsigned char)(1 + roll(&d, 255));
        memset(c->p.memory + start, parts[i].fill, bytes);
    }
    for (int i = 0; i < PARTS; i++)
        if (parts[i].bytes)
            CHECK(!hbm_heap_give(c->p.heap, parts[i].start), "not given back");
    return NULL;
}

void test_heap(uint64_t seed, double seconds)
{
    double until = seconds_now() + seconds / 2;
    check_holds();
    check_discard();
    for (uint64_t run = 0; run < 3 || seconds_now() < until; run++)
        run_model(seed + run);
}

void test_heap_threads(uint64_t seed, double seconds)
{
    crowd c = {.p = new_place(STEPS * PAGE, PAGE), .seed = seed};
    pthread_t threads[THREADS];
    pthread_mutex_init(&c.populating, NULL);
    hbm_heap_on_grow(c.p.heap, populate, &c);
    hbm_heap_keep(c.p.heap, 2 * PAGE);
    c.until = seconds_now() + seconds;
    for (int i = 0; i < THREADS; i++)
        CHECK(!pthread_create(&threads[i], NULL, run_thread, &c), "no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    hbm_heap_usage use;
    hbm_heap_use(c.p.heap, &use);
    CHECK(!use.taken && !use.extents && use.idle == use.populated, "not all came back");
    CHECK(use.populated <= 2 * PAGE, "%lu bytes stay populated", use.populated);
    CHECK(bytes_held(c.p) <= 2 * PAGE, "the file keeps %lu bytes", bytes_held(c.p));
    end_place(c.p, STEPS * PAGE);
}

void test_heap_forks(uint64_t seed, double seconds)
{
    (void)seed, (void)seconds;
    place p = new_place(STEPS * PAGE, PAGE);
    uint64_t start = hbm_heap_take(p.heap, 100, 64);
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        CHECK(hbm_heap_take(p.heap, 1, 1) == HBM_NOWHERE && errno == ECHILD, "a child may take");
        CHECK(hbm_heap_get(p.heap, 1, 1) == HBM_NOWHERE && errno == ECHILD, "a child may get");
        CHECK(hbm_heap_give(p.heap, start) == ECHILD, "a child may give");
        CHECK(hbm_heap_keep(p.heap, 0) == ECHILD, "a child may trim");
        CHECK(hbm_heap_populated(p.heap, 0, PAGE) == ECHILD, "a child may populate");
        CHECK(!hbm_heap_hold(p.heap, 0, PAGE) && errno == ECHILD, "a child may hold");
        CHECK(hbm_heap_size(p.heap, start) == 128, "a child may not look");
        hbm_heap_free(p.heap);
        _Exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && !status, "the child failed");
    CHECK(!hbm_heap_give(p.heap, start), "not given back");
    end_place(p, STEPS * PAGE);
}
