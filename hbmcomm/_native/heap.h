/* What the files of the heap share: heap.c, population.c, quarantine.c. */
#ifndef HBMCOMM_HEAP_H
#define HBMCOMM_HEAP_H

#include <pthread.h>
#include <stdint.h>

#include "extents.h"
#include "fork.h"
#include "interface.h"

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
    int fills_itself;       /* what is missing is zero pages of the kernel's, which it may ask for */
    pthread_mutex_t lock;   /* of all below */
    extents extents;
    uint64_t *populated;    /* bits, one for each step */
    uint64_t idle;          /* populated steps that are free from end to end */
    uint64_t keep;          /* bytes of them that stay populated */
    held_range *holds;
    uint64_t held, holds_allocated, ids;
};

/* In the child of a fork the memory is the parent's, and the lock may be held for ever by a thread
   that the child does not have. Every function looks before it locks. */
static inline int is_forked(const hbm_heap *h) { return h->forks != hbm_forks(); }

/* population.c: populates what is missing under a range, and asks nobody whether there is memory. */
int hbm_heap_fill(hbm_heap *h, uint64_t start, uint64_t end);

/* All that follow want the lock held. */

/* heap.c: gives a part of a free extent another state, and makes an extent free; both keep `idle`.
   The first needs nodes that hbm_extents_reserve made. */
void hbm_heap_set(hbm_heap *h, uint32_t at, uint64_t start, uint64_t end, uint32_t state);
void hbm_heap_make_free(hbm_heap *h, uint32_t at);
uint64_t hbm_heap_idle_under(const hbm_heap *h, uint32_t at, uint64_t start, uint64_t end);

/* population.c: gives idle steps beyond `keep` back to the system; lets the lock go meanwhile. */
void hbm_heap_trim(hbm_heap *h);

/* quarantine.c: whether any held range overlaps an extent. */
int hbm_heap_is_held(const hbm_heap *h, const extent *e);

#endif
