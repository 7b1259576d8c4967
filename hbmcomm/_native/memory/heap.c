/* The heap of a process's own shared memory: allocates and frees extents.

   None of its state is in the shared memory itself, so that no peer can damage it.

   Ordering: a mutex guards the state. It is held inside the heap's functions alone, and never while
   Python runs, which may collect an array, and so free memory, at any of its own steps. */
#include "memory/heap_state.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/bitmap.h"
#include "memory/population.h"

hbm_heap *hbm_heap_new(uintptr_t address, uint64_t bytes, uint64_t step)
{
    if (step < GRAIN || step & (step - 1) || bytes < step || bytes > INT64_MAX) {
        errno = EINVAL;
        return NULL;
    }
    hbm_heap *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->address = address;
    h->bytes = bytes / step * step;
    h->step = step;
    h->forks = hbm_forks();
    h->keep = KEEP_ALL;
    h->populated = calloc(words_for(h->bytes / step), sizeof *h->populated);
    if (!h->populated || hbm_extents_begin(&h->extents, h->bytes)) {
        free(h->populated);
        free(h);
        errno = ENOMEM;
        return NULL;
    }
    pthread_mutex_init(&h->lock, NULL);
    return h;
}

void hbm_heap_delete(hbm_heap *h)
{
    if (!h)
        return;
    if (!is_forked(h))
        pthread_mutex_destroy(&h->lock);
    hbm_extents_end(&h->extents);
    free(h->populated);
    free(h->holds);
    free(h);
}

static uint64_t nowhere(int why)
{
    errno = why;
    return HBM_NOWHERE;
}

uint64_t hbm_heap_reserve(hbm_heap *h, uint64_t bytes, uint64_t alignment)
{
    if (is_forked(h))
        return nowhere(ECHILD);
    if (alignment & (alignment - 1))
        return nowhere(EINVAL);
    if (bytes > h->bytes || alignment > h->bytes)
        return nowhere(ENOMEM);
    alignment = alignment < GRAIN ? GRAIN : alignment;
    bytes = bytes ? round_up(bytes, GRAIN) : GRAIN;
    uint64_t start = HBM_NOWHERE;
    pthread_mutex_lock(&h->lock);
    if (!hbm_extents_reserve(&h->extents)) {
        uint32_t at = hbm_extents_first(&h->extents, bytes, alignment);
        if (at) {
            start = round_up(h->extents.all[at].start, alignment);
            hbm_heap_set(h, at, start, start + bytes, EXTENT_TAKEN);
        }
    }
    pthread_mutex_unlock(&h->lock);
    return start == HBM_NOWHERE ? nowhere(ENOMEM) : start;
}

/* The extent that was taken at exactly this offset, or 0. */
static uint32_t taken_at(const hbm_heap *h, uint64_t offset)
{
    if (offset >= h->bytes)
        return 0;
    uint32_t at = hbm_extents_at(&h->extents, offset);
    const extent *e = &h->extents.all[at];
    return e->start == offset && e->state == EXTENT_TAKEN ? at : 0;
}

int hbm_heap_free(hbm_heap *h, uint64_t offset)
{
    if (is_forked(h))
        return ECHILD;
    pthread_mutex_lock(&h->lock);
    uint32_t at = taken_at(h, offset);
    if (at && hbm_heap_is_held(h, &h->extents.all[at])) {
        h->extents.all[at].state = EXTENT_PARKED;
    } else if (at) {
        hbm_heap_make_free(h, at);
        hbm_heap_trim(h);
    }
    pthread_mutex_unlock(&h->lock);
    return at ? 0 : EINVAL;
}

/* In the child of a fork a lock that is held now is held for ever. */
uint64_t hbm_heap_size(hbm_heap *h, uint64_t offset)
{
    if (!is_forked(h))
        pthread_mutex_lock(&h->lock);
    else if (pthread_mutex_trylock(&h->lock))
        return 0;
    uint32_t at = taken_at(h, offset);
    uint64_t bytes = at ? h->extents.all[at].end - offset : 0;
    pthread_mutex_unlock(&h->lock);
    return bytes;
}

void hbm_heap_on_grow(hbm_heap *h, int (*populate)(void *context, uint64_t start, uint64_t end),
                      void *context)
{
    h->context = context;
    h->populate = populate;
}

void hbm_heap_fills_itself(hbm_heap *h) { h->fills_itself = 1; }

int hbm_heap_populate(hbm_heap *h, uint64_t start, uint64_t end)
{
    uint64_t from, to;
    if (!hbm_heap_missing(h, start, end, &from, &to))
        return 0;
    int failed = h->populate ? h->populate(h->context, start, end) : 1;
    if (!failed || (failed < 0 && !hbm_heap_missing(h, start, end, &from, &to)))
        return 0;
    return failed > 0 || !h->fills_itself || hbm_heap_fill(h, start, end) ? ENOMEM : 0;
}

uint64_t hbm_heap_allocate(hbm_heap *h, uint64_t bytes, uint64_t alignment)
{
    uint64_t start = hbm_heap_reserve(h, bytes, alignment);
    if (start == HBM_NOWHERE || !hbm_heap_populate(h, start, start + (bytes ? bytes : 1)))
        return start;
    hbm_heap_free(h, start);
    return nowhere(ENOMEM);
}

uint64_t hbm_heap_array(hbm_heap *h, uint64_t bytes)
{
    return hbm_heap_allocate(h, bytes, bytes < HUGE_FROM ? GRAIN : HUGE_PAGE);
}

void hbm_heap_use(hbm_heap *h, hbm_heap_usage *usage)
{
    *usage = (hbm_heap_usage){.bytes = h->bytes};
    if (is_forked(h))
        return;
    pthread_mutex_lock(&h->lock);
    for (uint64_t offset = 0; offset < h->bytes;) {
        const extent *e = &h->extents.all[hbm_extents_at(&h->extents, offset)];
        uint64_t bytes = e->end - e->start;
        usage->extents += e->state != EXTENT_FREE;
        usage->taken += e->state == EXTENT_TAKEN ? bytes : 0;
        usage->parked += e->state == EXTENT_PARKED ? bytes : 0;
        offset = e->end;
    }
    usage->populated = count_steps(h->populated, 0, h->bytes / h->step) * h->step;
    usage->idle = h->idle * h->step;
    usage->keep = h->keep;
    pthread_mutex_unlock(&h->lock);
}
