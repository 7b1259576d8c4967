/* NumPy's hook over a heap: each size comes from the right memory, and goes back to it. */
#define _GNU_SOURCE
#include "core_test.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES (8u << 20)
#define STEP (2u << 20)
#define LARGE (100u << 10)

typedef struct { /* NumPy's PyDataMem_Handler */
    char name[127];
    uint8_t version;
    void *context;
    void *(*malloc)(void *, size_t);
    void *(*calloc)(void *, size_t, size_t);
    void *(*realloc)(void *, void *, size_t);
    void (*free)(void *, void *, size_t);
} handler;

static hbm_heap *heap;
static unsigned char *memory;
static uintptr_t made;
static int released;

static void *pointer_of(void *capsule, const char *name)
{
    CHECK(capsule == &made && !strcmp(name, "mem_handler"), "another capsule");
    return (void *)made;
}

static void *owner_of(void *capsule) { return capsule; }

static void release(void *object) { released += object == &made; }

static int lacking; /* no memory: nothing can be populated */

static int populate(UNUSED void *context, uint64_t start, uint64_t end)
{
    return lacking || hbm_heap_populated(heap, start / STEP * STEP, (end + STEP - 1) / STEP * STEP);
}

static int is_shared(const void *block)
{
    return (uintptr_t)block - (uintptr_t)memory < BYTES;
}

static uint64_t taken(void)
{
    hbm_heap_usage use;
    hbm_heap_use(heap, &use);
    return use.taken;
}

static void check_sizes(const handler *h)
{
    unsigned char *small = h->malloc(h->context, 1000), *large = h->malloc(h->context, LARGE);
    unsigned char *huge = h->malloc(h->context, 5u << 20);
    CHECK(small && !is_shared(small), "a small array is shared");
    CHECK(large && is_shared(large) && (uintptr_t)large % 64 == 0, "a large array is not shared");
    CHECK(huge && is_shared(huge) && (uintptr_t)huge % STEP == 0, "no huge page");
    unsigned char *more = h->malloc(h->context, 5u << 20);
    CHECK(more && !is_shared(more), "what the heap lacks does not come from libc");
    memset(large, 7, LARGE);
    h->free(h->context, large, LARGE);
    unsigned char *zeros = h->calloc(h->context, LARGE / 4, 4);
    CHECK(zeros == large, "what was given back is not taken again");
    for (size_t i = 0; i < LARGE; i++)
        CHECK(!zeros[i], "byte %zu of zeros is %d", i, zeros[i]);
    CHECK(!h->calloc(h->context, SIZE_MAX / 2, 3), "an overflow was served");
    h->free(h->context, small, 1000);
    h->free(h->context, zeros, LARGE);
    h->free(h->context, huge, 5u << 20);
    h->free(h->context, more, 5u << 20);
    CHECK(!taken(), "%lu bytes did not come back", taken());
}

static void check_resizing(const handler *h)
{
    static const size_t sizes[] = {100, LARGE, LARGE + 5000, 3 * LARGE, LARGE, 70000, 200, LARGE,
                                   1};
    unsigned char *block = h->realloc(h->context, NULL, 50);
    size_t had = 50;
    memset(block, 5, had);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        block = h->realloc(h->context, block, sizes[i]);
        CHECK(block, "not resized to %zu", sizes[i]);
        CHECK(is_shared(block) == (sizes[i] >= 65536), "%zu bytes are in the wrong memory",
              sizes[i]);
        for (size_t b = 0; b < (had < sizes[i] ? had : sizes[i]); b++)
            CHECK(block[b] == 5, "byte %zu was lost on the way to %zu", b, sizes[i]);
        had = sizes[i];
        memset(block, 5, had);
    }
    h->free(h->context, block, had);
    CHECK(!taken(), "%lu bytes did not come back", taken());
}

static void check_fork(const handler *h)
{
    unsigned char *parents = h->malloc(h->context, LARGE);
    memset(parents, 9, LARGE);
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        unsigned char *own = h->malloc(h->context, LARGE);
        CHECK(own && !is_shared(own), "a child takes the parent's memory");
        unsigned char *moved = h->realloc(h->context, parents, 2 * LARGE);
        CHECK(moved && !is_shared(moved) && moved[LARGE - 1] == 9, "not moved out");
        h->free(h->context, parents, LARGE);
        h->free(h->context, own, LARGE);
        _Exit(0);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && !status, "the child failed");
    CHECK(taken() >= LARGE && parents[0] == 9, "the child gave the parent's memory back");
    h->free(h->context, parents, LARGE);
}

void test_handler(UNUSED uint64_t seed, UNUSED double seconds)
{
    void *room = mmap(NULL, BYTES + STEP, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
    CHECK(room != MAP_FAILED, "no memory");
    memory = (unsigned char *)(((uintptr_t)room + STEP - 1) / STEP * STEP);
    heap = hbm_heap_new((uintptr_t)memory, BYTES, STEP);
    CHECK(heap, "no heap");
    hbm_heap_on_grow(heap, populate, NULL);
    hbm_handler_python((uintptr_t)pointer_of, (uintptr_t)owner_of, (uintptr_t)release);
    made = hbm_handler_new(heap, (uintptr_t)memory, BYTES);
    const handler *h = (const handler *)made;
    CHECK(h && h->version == 1, "no handler");
    lacking = 1;
    void *block = h->malloc(h->context, LARGE);
    CHECK(block && !is_shared(block), "memory that cannot be populated was handed out");
    h->free(h->context, block, LARGE);
    CHECK(!taken(), "what could not be populated is still taken");
    lacking = 0;
    check_sizes(h);
    check_resizing(h);
    check_fork(h);
    hbm_handler_end(&made);
    CHECK(released == 1, "the owner was not let go");
    hbm_heap_delete(heap);
    munmap(room, BYTES + STEP);
}
