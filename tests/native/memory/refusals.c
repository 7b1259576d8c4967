/* Returning idle memory to the system: what the kernel refuses stays, and all else goes; memory that is
   held meanwhile stays held. */
#include "core_test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STEPS 16
#define BYTES (STEPS * PAGE)

static hbm_heap *populated_heap(unsigned char **memory)
{
    *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(*memory != MAP_FAILED, "no memory");
    hbm_heap *heap = hbm_heap_new((uintptr_t)*memory, BYTES, PAGE);
    CHECK(heap && !hbm_heap_populated(heap, 0, BYTES), "no heap");
    return heap;
}

static uint64_t idle_bytes(hbm_heap *heap)
{
    hbm_heap_usage usage;
    hbm_heap_use(heap, &usage);
    return usage.idle;
}

static void check_refusal(void)
{
    unsigned char *memory;
    hbm_heap *heap = populated_heap(&memory);
    /* by number: AddressSanitizer's mlock() does nothing */
    CHECK(!syscall(SYS_mlock, memory + BYTES - PAGE, PAGE), "no memory can be locked");
    hbm_heap_keep(heap, 0);
    CHECK(idle_bytes(heap) == PAGE, "%d bytes are idle beside a locked page",
          (int)idle_bytes(heap));
    syscall(SYS_munlock, memory + BYTES - PAGE, PAGE);
    for (int i = 0; i < 8 && idle_bytes(heap); i++) {
        uint64_t at = hbm_heap_reserve(heap, PAGE, PAGE);
        hbm_heap_populated(heap, at, at + PAGE);
        hbm_heap_free(heap, at);
    }
    CHECK(!idle_bytes(heap), "one refusal ended trimming for ever");
    hbm_heap_delete(heap);
    munmap(memory, BYTES);
}

/* ---- holding memory that is on its way to the system ---- */

static hbm_heap *common;
static _Atomic int is_over;
static _Atomic uint64_t holds; /* odd: all of the heap is held */

static void *hold_and_release(UNUSED void *nothing)
{
    while (!atomic_load(&is_over)) {
        uint64_t id = hbm_heap_hold(common, 0, BYTES);
        CHECK(id, "nothing can be held");
        atomic_fetch_add(&holds, 1);
        for (int i = 0; i < 20; i++)
            sched_yield();
        atomic_fetch_add(&holds, 1);
        hbm_heap_release(common, id);
    }
    return NULL;
}

static void check_held(double seconds)
{
    unsigned char *memory;
    pthread_t thread;
    common = populated_heap(&memory);
    hbm_heap_keep(common, 0);
    CHECK(!pthread_create(&thread, NULL, hold_and_release, NULL), "no thread");
    for (double end = seconds_now() + seconds; seconds_now() < end;) {
        uint64_t before = atomic_load(&holds), at = hbm_heap_reserve(common, BYTES / 2, PAGE);
        if (at == HBM_NOWHERE)
            continue;
        CHECK(before % 2 == 0 || atomic_load(&holds) != before, "held memory was allocated");
        hbm_heap_populated(common, at, at + BYTES / 2);
        hbm_heap_free(common, at);
    }
    atomic_store(&is_over, 1);
    pthread_join(thread, NULL);
    hbm_heap_delete(common);
    munmap(memory, BYTES);
}

void test_refusals(UNUSED uint64_t seed, double seconds)
{
    check_refusal();
    check_held(seconds);
}
