/* Extents: a range of offsets, divided into parts that are free or not. The data structure of the
   heap.

   It knows neither memory nor threads. Neighbours are never both free. */
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
    extent *all;             /* all[0] means none; its room is 0 */
    uint64_t bytes;          /* of the whole range */
    uint32_t root, count;
    uint32_t spare;          /* first of a list of unused nodes, linked by `left` */
    uint32_t unused, allocated;
    uint64_t random;
} extents;

/* Begins with one free extent of that many bytes; 0, or ENOMEM. */
int hbm_extents_begin(extents *x, uint64_t bytes);
void hbm_extents_end(extents *x);

/* Allocates the nodes that one call of hbm_extents_set() needs; 0, or ENOMEM. */
int hbm_extents_reserve(extents *x);

/* The lowest free extent with room for `bytes` at a multiple of `alignment`; 0: none. */
uint32_t hbm_extents_first(const extents *x, uint64_t bytes, uint64_t alignment);

/* The extent that contains an offset, which is below the end of the range. */
uint32_t hbm_extents_at(const extents *x, uint64_t offset);

/* Changes the state of part of an extent to one other than free. The rest keeps its state. */
void hbm_extents_set(extents *x, uint32_t at, uint64_t start, uint64_t end, uint32_t state);

/* Makes an extent free and joins it with free neighbours; returns the extent that results. */
uint32_t hbm_extents_free(extents *x, uint32_t at);

static inline uint64_t round_up(uint64_t value, uint64_t multiple)
{
    return (value + multiple - 1) & ~(multiple - 1);
}

#endif
