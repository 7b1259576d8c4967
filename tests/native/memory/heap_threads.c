/* Many threads use one heap, while memory runs short and goes back; and the child of a fork. */
#include "heap_place.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#define THREADS 4
#define PARTS 8

typedef struct {
    place p;
    pthread_mutex_t populating;
    _Atomic int next;
    double until;
    uint64_t seed;
} crowd;

/* Like the function in Python: one thread at a time, and only missing steps. */
static int populate(void *context, uint64_t start, uint64_t end)
{
    crowd *c = context;
    uint64_t from, to;
    int problem = 0;
    if (mixed(start + 3 * end) % 4 == 0) /* a signal's handler raised: the heap fills the range */
        return -1;
    pthread_mutex_lock(&c->populating);
    while (!problem && hbm_heap_missing(c->p.heap, start, end, &from, &to)) {
        problem = madvise(c->p.memory + from, to - from, 23 /* MADV_POPULATE_WRITE */);
        if (problem && errno == EINVAL) /* before Linux 5.14 */
            problem = 0;
        problem |= mixed(from + end) % 8 == 0; /* sometimes memory is short */
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
            CHECK(!hbm_heap_free(c->p.heap, parts[i].start), "not given back");
            parts[i].bytes = 0;
            continue;
        }
        uint64_t bytes = 1 + roll(&d, roll(&d, 3) ? 2000 : 5 * PAGE);
        uint64_t start = hbm_heap_allocate(c->p.heap, bytes, roll(&d, 2) ? 64 : PAGE);
        if (start == HBM_NOWHERE)
            continue;
        parts[i].start = start;
        parts[i].bytes = bytes;
        parts[i].fill = (unsigned char)(1 + roll(&d, 255));
        memset(c->p.memory + start, parts[i].fill, bytes);
    }
    for (int i = 0; i < PARTS; i++)
        if (parts[i].bytes)
            CHECK(!hbm_heap_free(c->p.heap, parts[i].start), "not given back");
    return NULL;
}

void test_heap_threads(uint64_t seed, double seconds)
{
    crowd c = {.p = new_place(STEPS * PAGE, PAGE), .seed = seed};
    pthread_t threads[THREADS];
    pthread_mutex_init(&c.populating, NULL);
    hbm_heap_on_grow(c.p.heap, populate, &c);
    hbm_heap_fills_itself(c.p.heap);
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

void test_heap_forks(UNUSED uint64_t seed, UNUSED double seconds)
{
    place p = new_place(STEPS * PAGE, PAGE);
    uint64_t start = hbm_heap_reserve(p.heap, 100, 64);
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        CHECK(hbm_heap_reserve(p.heap, 1, 1) == HBM_NOWHERE && errno == ECHILD, "a child may take");
        CHECK(hbm_heap_allocate(p.heap, 1, 1) == HBM_NOWHERE && errno == ECHILD, "a child may get");
        CHECK(hbm_heap_free(p.heap, start) == ECHILD, "a child may give");
        CHECK(hbm_heap_keep(p.heap, 0) == ECHILD, "a child may trim");
        CHECK(hbm_heap_populated(p.heap, 0, PAGE) == ECHILD, "a child may populate");
        CHECK(!hbm_heap_hold(p.heap, 0, PAGE) && errno == ECHILD, "a child may hold");
        CHECK(hbm_heap_size(p.heap, start) == 128, "a child may not look");
        hbm_heap_delete(p.heap);
        _Exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && !status, "the child failed");
    CHECK(!hbm_heap_free(p.heap, start), "not given back");
    end_place(p, STEPS * PAGE);
}
