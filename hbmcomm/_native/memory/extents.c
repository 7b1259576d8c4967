/* Extents in a treap: a search tree by offset, balanced by random weights (Seidel and Aragon 1996).

   Each node holds the length of the longest free extent in its subtree, so that one descent finds
   the lowest extent that fits. First fit keeps used memory together at the low end of the range.
   All operations take O(log n) expected time, with one exception: where many free extents are long
   enough but have no room at the alignment, the search visits each of them.

   Ordering: the heap's mutex guards all of it. */
#include "memory/extents.h"

#include <errno.h>
#include <stdlib.h>

#define FIRST_NODES 64
#define SET_NEEDS 2 /* the most nodes that hbm_extents_set() adds */

static uint64_t free_bytes(const extent *e)
{
    return e->state == EXTENT_FREE ? e->end - e->start : 0;
}

/* Recomputes a node's summary of its subtree. */
static void pull(extents *x, uint32_t at)
{
    extent *e = &x->all[at];
    uint64_t room = free_bytes(e), left = x->all[e->left].room, right = x->all[e->right].room;
    room = room > left ? room : left;
    e->room = room > right ? room : right;
}

/* Joins two trees; `low` has the lower offsets. */
static uint32_t join(extents *x, uint32_t low, uint32_t high)
{
    if (!low || !high)
        return low ? low : high;
    if (x->all[low].weight >= x->all[high].weight) {
        x->all[low].right = join(x, x->all[low].right, high);
        pull(x, low);
        return low;
    }
    x->all[high].left = join(x, low, x->all[high].left);
    pull(x, high);
    return high;
}

/* Splits a tree in two: extents that start below an offset, and the rest. */
static void cut(extents *x, uint32_t at, uint64_t offset, uint32_t *low, uint32_t *high)
{
    if (!at) {
        *low = *high = 0;
        return;
    }
    uint32_t inner;
    if (x->all[at].start < offset) {
        cut(x, x->all[at].right, offset, &inner, high);
        x->all[at].right = inner;
        *low = at;
    } else {
        cut(x, x->all[at].left, offset, low, &inner);
        x->all[at].left = inner;
        *high = at;
    }
    pull(x, at);
}

static void add(extents *x, uint64_t start, uint64_t end, uint32_t state)
{
    uint32_t at = x->spare, low, high;
    if (at)
        x->spare = x->all[at].left;
    else
        at = x->unused++;
    x->random ^= x->random << 13; /* xorshift64 (Marsaglia 2003) */
    x->random ^= x->random >> 7;
    x->random ^= x->random << 17;
    x->all[at] = (extent){.start = start, .end = end, .weight = (uint32_t)(x->random >> 32),
                          .state = state};
    pull(x, at);
    cut(x, x->root, start, &low, &high);
    x->root = join(x, join(x, low, at), high);
    x->count++;
}

static uint32_t without(extents *x, uint32_t at, uint32_t gone)
{
    extent *e = &x->all[at];
    if (at == gone)
        return join(x, e->left, e->right);
    if (x->all[gone].start < e->start)
        e->left = without(x, e->left, gone);
    else
        e->right = without(x, e->right, gone);
    pull(x, at);
    return at;
}

static void drop(extents *x, uint32_t gone)
{
    x->root = without(x, x->root, gone);
    x->all[gone].left = x->spare;
    x->spare = gone;
    x->count--;
}

/* Updates the summaries of a changed node and of all nodes above it. */
static void renew(extents *x, uint32_t at, uint32_t changed)
{
    if (at != changed) {
        const extent *e = &x->all[at];
        renew(x, x->all[changed].start < e->start ? e->left : e->right, changed);
    }
    pull(x, at);
}

int hbm_extents_begin(extents *x, uint64_t bytes)
{
    *x = (extents){.bytes = bytes, .unused = 1, .allocated = FIRST_NODES,
                   .random = 0x9E3779B97F4A7C15u};
    x->all = calloc(FIRST_NODES, sizeof *x->all);
    if (!x->all)
        return ENOMEM;
    add(x, 0, bytes, EXTENT_FREE);
    return 0;
}

void hbm_extents_end(extents *x) { free(x->all); }

int hbm_extents_reserve(extents *x)
{
    if (x->unused + SET_NEEDS <= x->allocated)
        return 0;
    if (x->allocated > UINT32_MAX / 2)
        return ENOMEM;
    extent *more = realloc(x->all, 2 * (size_t)x->allocated * sizeof *more);
    if (!more)
        return ENOMEM;
    x->all = more;
    x->allocated *= 2;
    return 0;
}

static uint32_t first(const extents *x, uint32_t at, uint64_t bytes, uint64_t alignment)
{
    const extent *e = &x->all[at];
    if (e->room < bytes) /* extent 0, which means none, has no room */
        return 0;
    uint32_t lower = first(x, e->left, bytes, alignment);
    if (lower)
        return lower;
    if (free_bytes(e) >= bytes) {
        uint64_t from = round_up(e->start, alignment);
        if (from >= e->start && from <= e->end && e->end - from >= bytes)
            return at;
    }
    return first(x, e->right, bytes, alignment);
}

uint32_t hbm_extents_first(const extents *x, uint64_t bytes, uint64_t alignment)
{
    return bytes ? first(x, x->root, bytes, alignment) : 0;
}

uint32_t hbm_extents_at(const extents *x, uint64_t offset)
{
    uint32_t at = x->root;
    while (offset < x->all[at].start || offset >= x->all[at].end)
        at = offset < x->all[at].start ? x->all[at].left : x->all[at].right;
    return at;
}

void hbm_extents_set(extents *x, uint32_t at, uint64_t start, uint64_t end, uint32_t state)
{
    extent before = x->all[at];
    if (start > before.start) {
        x->all[at].end = start;
        renew(x, x->root, at);
        add(x, start, end, state);
    } else {
        x->all[at].end = end;
        x->all[at].state = state;
        renew(x, x->root, at);
    }
    if (end < before.end)
        add(x, end, before.end, before.state);
}

uint32_t hbm_extents_free(extents *x, uint32_t at)
{
    uint64_t start = x->all[at].start, end = x->all[at].end;
    x->all[at].state = EXTENT_FREE;
    if (end < x->bytes) {
        uint32_t next = hbm_extents_at(x, end);
        if (x->all[next].state == EXTENT_FREE) {
            x->all[at].end = x->all[next].end;
            drop(x, next);
        }
    }
    if (start) {
        uint32_t before = hbm_extents_at(x, start - 1);
        if (x->all[before].state == EXTENT_FREE) {
            end = x->all[at].end;
            drop(x, at);
            x->all[before].end = end;
            at = before;
        }
    }
    renew(x, x->root, at);
    return at;
}
