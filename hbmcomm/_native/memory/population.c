/* Records which steps of a heap's range are populated, and returns idle ones to the system.

   The caller populates steps, and decides whether there is memory for them; this file keeps the
   record. A step is idle when it is populated and entirely free. Idle steps beyond `keep` go back
   to the system from the highest offset down, because allocations use the lowest first.

   Ordering: the heap's mutex guards the record. It is unlocked while the kernel removes idle steps;
   these are EXTENT_LEAVING meanwhile, so nobody can allocate them and other calls proceed. After a
   failure it is held while the kernel fills or discards steps: else a thread could discard what
   another has filled, and not recorded yet. */
#define _GNU_SOURCE
#include "memory/population.h"

#include <errno.h>
#include <sys/mman.h>

#include "memory/bitmap.h"

#define POPULATE_WRITE 23 /* MADV_POPULATE_WRITE, since Linux 5.14 */
#define MOST_PAUSE 1024

/* Finds the highest run of idle steps below step `below`, at most `most` of them. Returns the free
   extent that it is in, or 0. */
static uint32_t last_idle(const hbm_heap *h, uint64_t below, uint64_t most, uint64_t *from,
                          uint64_t *to)
{
    for (;;) {
        uint64_t end = find_last_step(h->populated, 0, below, 1);
        if (!end)
            return 0;
        uint32_t at = hbm_extents_at(&h->extents, (end - 1) * h->step);
        const extent *e = &h->extents.all[at];
        uint64_t first = round_up(e->start, h->step) / h->step;
        if (e->state == EXTENT_FREE && e->end >= end * h->step && first < end) {
            uint64_t run = find_last_step(h->populated, first, end, 0);
            *from = end - run > most ? end - most : run;
            *to = end;
            return at;
        }
        below = e->state == EXTENT_FREE ? end - 1 : e->start / h->step;
    }
}

/* Removes the memory of a run of steps in the free extent `at`; 0 or an errno value. */
static int remove_steps(hbm_heap *h, uint32_t at, uint64_t from, uint64_t to)
{
    uint64_t start = from * h->step, bytes = (to - from) * h->step;
    hbm_heap_set(h, at, start, start + bytes, EXTENT_LEAVING);
    mark_steps(h->populated, from, to, 0);
    pthread_mutex_unlock(&h->lock);
    int refused = madvise((void *)(h->address + start), bytes, MADV_REMOVE) ? errno : 0;
    pthread_mutex_lock(&h->lock);
    if (refused)
        mark_steps(h->populated, from, to, 1);
    at = hbm_extents_at(&h->extents, start);
    if (hbm_heap_is_held(h, &h->extents.all[at]))
        h->extents.all[at].state = EXTENT_PARKED; /* it was held while the lock was free */
    else
        hbm_heap_make_free(h, at);
    return refused;
}

/* After a refusal by the kernel, the next attempts are ever rarer: it may be for ever. */
static void set_pause(hbm_heap *h, int refused)
{
    unsigned longer = h->longest_pause ? 2 * h->longest_pause : 1;
    h->longest_pause = !refused ? 0 : longer < MOST_PAUSE ? longer : MOST_PAUSE;
    h->pause = h->longest_pause;
}

/* The kernel refuses (EINVAL) a range of which a page is locked in memory: shorter ranges are tried,
   down to one step, which then stays populated. It refuses all of a file that cannot have holes. */
void hbm_heap_trim(hbm_heap *h)
{
    uint64_t from, to, below = h->bytes / h->step, longest = below, locked = 0;
    int refused = 0;
    if (h->keep == KEEP_ALL || h->idle <= h->keep / h->step)
        return;
    if (h->pause) {
        h->pause--;
        return;
    }
    while ((!refused || refused == EINVAL) && h->idle > h->keep / h->step + locked) {
        uint64_t most = h->idle - h->keep / h->step - locked;
        if (hbm_extents_reserve(&h->extents))
            return;
        uint32_t at = last_idle(h, below, most < longest ? most : longest, &from, &to);
        if (!at)
            break;
        int problem = remove_steps(h, at, from, to);
        refused = problem ? problem : refused;
        if (!problem) {
            longest = 2 * longest < h->bytes / h->step ? 2 * longest : h->bytes / h->step;
        } else if (to - from > 1) {
            longest = (to - from) / 2;
        } else {
            below = from;
            locked++;
        }
    }
    set_pause(h, refused);
}

int hbm_heap_keep(hbm_heap *h, uint64_t bytes)
{
    if (is_forked(h))
        return ECHILD;
    pthread_mutex_lock(&h->lock);
    h->keep = bytes;
    h->pause = 0;
    hbm_heap_trim(h);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

static int find_missing(const hbm_heap *h, uint64_t start, uint64_t end, uint64_t *from,
                        uint64_t *to)
{
    end = end < h->bytes ? end : h->bytes;
    if (start >= end)
        return 0;
    uint64_t last = round_up(end, h->step) / h->step;
    uint64_t first = find_step(h->populated, start / h->step, last, 0);
    *from = first * h->step;
    *to = find_step(h->populated, first, last, 1) * h->step;
    return first < last;
}

int hbm_heap_missing(hbm_heap *h, uint64_t start, uint64_t end, uint64_t *from, uint64_t *to)
{
    if (is_forked(h))
        return 0;
    pthread_mutex_lock(&h->lock);
    int is_missing = find_missing(h, start, end, from, to);
    pthread_mutex_unlock(&h->lock);
    return is_missing;
}

static int is_of_steps(const hbm_heap *h, uint64_t from, uint64_t to)
{
    return from % h->step == 0 && to % h->step == 0 && from <= to && to <= h->bytes;
}

/* The number of idle steps in [from, to). */
static uint64_t idle_between(const hbm_heap *h, uint64_t from, uint64_t to)
{
    uint64_t idle = 0;
    while (from < to) {
        uint32_t at = hbm_extents_at(&h->extents, from);
        const extent *e = &h->extents.all[at];
        uint64_t end = e->end < to ? e->end : to;
        if (e->state == EXTENT_FREE)
            idle += hbm_heap_idle_under(h, at, from, end);
        from = end;
    }
    return idle;
}

static void record(hbm_heap *h, uint64_t from, uint64_t to)
{
    h->idle -= idle_between(h, from, to); /* extents that were freed meanwhile become idle now */
    mark_steps(h->populated, from / h->step, to / h->step, 1);
    h->idle += idle_between(h, from, to);
    hbm_heap_trim(h);
}

int hbm_heap_populated(hbm_heap *h, uint64_t from, uint64_t to)
{
    if (is_forked(h))
        return ECHILD;
    if (!is_of_steps(h, from, to))
        return EINVAL;
    pthread_mutex_lock(&h->lock);
    record(h, from, to);
    pthread_mutex_unlock(&h->lock);
    return 0;
}

int hbm_heap_fill(hbm_heap *h, uint64_t start, uint64_t end)
{
    uint64_t from, to;
    int problem = 0;
    pthread_mutex_lock(&h->lock);
    while (!problem && find_missing(h, start, end, &from, &to)) {
        problem = madvise((void *)(h->address + from), to - from, POPULATE_WRITE);
        if (!problem)
            record(h, from, to);
    }
    pthread_mutex_unlock(&h->lock);
    return problem;
}

int hbm_heap_discard(hbm_heap *h, uint64_t from, uint64_t to)
{
    int problem = 0;
    if (is_forked(h))
        return ECHILD;
    if (!is_of_steps(h, from, to))
        return EINVAL;
    uint64_t start = from, first, last;
    pthread_mutex_lock(&h->lock);
    while (find_missing(h, start, to, &first, &last)) {
        if (madvise((void *)(h->address + first), last - first, MADV_REMOVE))
            problem = errno;
        start = last;
    }
    pthread_mutex_unlock(&h->lock);
    return problem;
}
