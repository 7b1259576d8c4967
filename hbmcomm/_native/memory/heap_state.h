/* The state of a heap, and the changes of its extents that keep its counts. */
#ifndef HBMCOMM_HEAP_STATE_H
#define HBMCOMM_HEAP_STATE_H

#include <pthread.h>
#include <stdint.h>

#include "api.h"
#include "memory/extents.h"
#include "memory/fork.h"

#define HUGE_FROM (4u * 1024u * 1024u) /* arrays of so many bytes begin at a huge page */
#define HUGE_PAGE (2u * 1024u * 1024u)
#define GRAIN 64u /* extents are whole cache lines: two arrays never share one */
#define KEEP_ALL UINT64_MAX

typedef struct {
    uint64_t id, start, end;
} held_range;

struct hbm_heap {
    uintptr_t address;
    uint64_t bytes, step;
    unsigned forks;
    int (*populate)(void *context, uint64_t start, uint64_t end);
    void *context;
    int fills_itself;       /* it may populate missing steps itself, with zero pages */
    pthread_mutex_t lock;   /* guards all fields below */
    extents extents;
    uint64_t *populated;    /* bits, one for each step */
    uint64_t idle;          /* populated steps that are free from end to end */
    uint64_t keep;          /* bytes of them that stay populated */
    unsigned pause, longest_pause; /* calls until the next attempt to remove steps, after a refusal */
    held_range *holds;
    uint64_t held, holds_allocated, ids;
};

/* In the child of a fork the memory is the parent's, and the lock may be held for ever by a thread
   that the child does not have. Every function looks before it locks. */
static inline int is_forked(const hbm_heap *h) { return h->forks != hbm_forks(); }

/* The caller holds the lock for all that follow. */

/* Gives part of an extent another state than free. Needs nodes that hbm_extents_reserve() made. */
void hbm_heap_set(hbm_heap *h, uint32_t at, uint64_t start, uint64_t end, uint32_t state);

void hbm_heap_make_free(hbm_heap *h, uint32_t at);

/* The number of populated steps that touch [start, end) and are entirely inside the extent `at`,
   which contains the range. While the extent is free, these steps are idle. */
uint64_t hbm_heap_idle_under(const hbm_heap *h, uint32_t at, uint64_t start, uint64_t end);

/* Whether any held range overlaps an extent. */
int hbm_heap_is_held(const hbm_heap *h, const extent *e);

#endif
