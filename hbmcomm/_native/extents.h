/* A range cut into extents, each free or not: the data structure behind heap.c.

   Knows offsets only: no memory, no threads. No two neighbours are free. */
#ifndef HBMCOMM_EXTENTS_H
#define HBMCOMM_EXTENTS_H

#include <stdint.h>

enum { EXTENT_FREE, EXTENT_TAKEN, EXTENT_PARKED, EXTENT_LEAVING };

typedef struct {
    uint64_t start, end;
    uint64_t room;           /* bytes of the longest free extent in this subtree */
    uint32_t left, right;    /* subtrees of lower and higher offsets; 0: none */
    uint32_t weight;         /* random; no child weighs more than its parent */
    uint32_t state;
} extent;

typedef struct {
    extent *all;             /* all[0] is no extent; its room is 0 */
    uint64_t bytes;          /* of the whole range */
    uint32_t root, count;
    uint32_t spare;          /* first of a list of unused nodes, linked by `left` */
    uint32_t unused, allocated;
    uint64_t random;
} extents;

/* One free extent of that many bytes; 0, or ENOMEM. */
int hbm_extents_begin(extents *x, uint64_t bytes);
void hbm_extents_end(extents *x);

/* Makes sure that one call of hbm_extents_set finds the nodes it needs; 0, or ENOMEM. */
int hbm_extents_reserve(extents *x);

/* The lowest free extent that has `bytes` from a multiple of `alignment` on; 0: none. */
uint32_t hbm_extents_first(const extents *x, uint64_t bytes, uint64_t alignment);

/* The extent in which an offset below the end of the range is. */
uint32_t hbm_extents_at(const extents *x, uint64_t offset);

/* Gives a part of an extent another state than free; the rest keeps the state it has. */
void hbm_extents_set(extents *x, uint32_t at, uint64_t start, uint64_t end, uint32_t state);

/* Makes an extent free and joins it with free neighbours; returns the extent that results. */
uint32_t hbm_extents_free(extents *x, uint32_t at);

static inline uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) & ~(multiple - 1);
}

#endif
