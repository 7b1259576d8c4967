/* Holds back ranges of a heap that other processes may still write into after a failed collective.

   Memory in a held range that is free, or is freed later, becomes EXTENT_PARKED. It becomes free
   when the last held range that overlaps it is released.

   Ordering: the heap's mutex guards all of it. */
#include "memory/heap_state.h"

#include <errno.h>
#include <stdlib.h>

#include "memory/population.h"

#define FIRST_HOLDS 8

/* Adds a range to the list; returns its number, or 0. */
static uint64_t add(hbm_heap *h, uint64_t start, uint64_t end)
{
    if (h->held == h->holds_allocated) {
        uint64_t more = h->holds_allocated ? 2 * h->holds_allocated : FIRST_HOLDS;
        held_range *holds = realloc(h->holds, more * sizeof *holds);
        if (!holds)
            return 0;
        h->holds = holds;
        h->holds_allocated = more;
    }
    h->holds[h->held++] = (held_range){++h->ids, start, end};
    return h->ids;
}

/* Parks free memory in a range; 0, or ENOMEM. */
static int park(hbm_heap *h, uint64_t start, uint64_t end)
{
    for (uint64_t offset = start; offset < end;) {
        if (hbm_extents_reserve(&h->extents))
            return ENOMEM;
        uint32_t at = hbm_extents_at(&h->extents, offset);
        const extent *e = &h->extents.all[at];
        uint64_t next = e->end < end ? e->end : end;
        if (e->state == EXTENT_FREE)
            hbm_heap_set(h, at, offset, next, EXTENT_PARKED);
        offset = next;
    }
    return 0;
}

static int release(hbm_heap *h, uint64_t id)
{
    uint64_t i = 0;
    while (i < h->held && h->holds[i].id != id)
        i++;
    if (i == h->held)
        return EINVAL;
    held_range gone = h->holds[i];
    h->holds[i] = h->holds[--h->held];
    for (uint64_t offset = gone.start; offset < gone.end;) {
        uint32_t at = hbm_extents_at(&h->extents, offset);
        const extent *e = &h->extents.all[at];
        offset = e->end;
        if (e->state == EXTENT_PARKED && !hbm_heap_is_held(h, e))
            hbm_heap_make_free(h, at);
    }
    return 0;
}

uint64_t hbm_heap_hold(hbm_heap *h, uint64_t start, uint64_t end)
{
    int problem = is_forked(h) ? ECHILD : start >= end || end > h->bytes ? EINVAL : 0;
    uint64_t id = 0;
    if (!problem) {
        start = start / GRAIN * GRAIN;
        end = round_up(end, GRAIN);
        pthread_mutex_lock(&h->lock);
        id = add(h, start, end);
        problem = id ? park(h, start, end) : ENOMEM;
        if (id && problem)
            release(h, id);
        pthread_mutex_unlock(&h->lock);
    }
    errno = problem;
    return problem ? 0 : id;
}

int hbm_heap_release(hbm_heap *h, uint64_t id)
{
    if (is_forked(h))
        return ECHILD;
    pthread_mutex_lock(&h->lock);
    int problem = release(h, id);
    if (!problem)
        hbm_heap_trim(h);
    pthread_mutex_unlock(&h->lock);
    return problem;
}
