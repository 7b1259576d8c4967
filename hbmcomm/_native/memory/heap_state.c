/* Changes of a heap's extents that keep the count of idle steps right.

   Ordering: the caller holds the heap's mutex. */
#include "memory/heap_state.h"

#include "memory/bitmap.h"

uint64_t hbm_heap_idle_under(const hbm_heap *h, uint32_t at, uint64_t start, uint64_t end)
{
    const extent *e = &h->extents.all[at];
    uint64_t from = round_up(e->start, h->step) / h->step, to = e->end / h->step;
    uint64_t first = start / h->step, last = round_up(end, h->step) / h->step;
    from = from > first ? from : first;
    to = to < last ? to : last;
    return from < to ? count_steps(h->populated, from, to) : 0;
}

void hbm_heap_set(hbm_heap *h, uint32_t at, uint64_t start, uint64_t end, uint32_t state)
{
    h->idle -= hbm_heap_idle_under(h, at, start, end);
    hbm_extents_set(&h->extents, at, start, end, state);
}

void hbm_heap_make_free(hbm_heap *h, uint32_t at)
{
    uint64_t start = h->extents.all[at].start, end = h->extents.all[at].end;
    uint32_t now = hbm_extents_free(&h->extents, at);
    h->idle += hbm_heap_idle_under(h, now, start, end);
}

int hbm_heap_is_held(const hbm_heap *h, const extent *e)
{
    for (uint64_t i = 0; i < h->held; i++)
        if (h->holds[i].start < e->end && e->start < h->holds[i].end)
            return 1;
    return 0;
}
