/* Counters of what a call costs in cache lines, for tests alone: nothing unless HBM_COUNTERS is set.

   Remote lines are those of other ranks' control blocks that this rank read, and lines of messages
   that it read from or wrote to other ranks' memory. A hop is a word that one rank wrote and another
   waited for: the longest chain of hops bounds the time of a call on any machine. */
#ifndef HBMCOMM_COUNTERS_H
#define HBMCOMM_COUNTERS_H

#ifdef HBM_COUNTERS

#include <stdatomic.h>
#include <stdint.h>

#define STEPS_COUNTED 16 /* a word's hops are kept for so many steps: others may read old ones late */
#define HOPS_OF_WORD _Atomic uint32_t hops[STEPS_COUNTED];
#define HOPS_OF_POST _Atomic uint32_t hops;
#define HOPS_BYTES 64

#define COUNTERS                                                                   \
    struct {                                                                       \
        uint64_t words, posts, data_lines, written_lines, folded_bytes, most_hops; \
    } count;
#define hops_at(w, step) (&(w)->hops[(step) % STEPS_COUNTED])
#define count_word(o, from, w, step)                                               \
    ((o)->comm->count.words += (from) != (o)->comm->rank,                          \
     (void)((step) ? take_hops(o, hops_at(w, step)) : (void)0))
#define count_post(o, from, p)                                                     \
    ((o)->comm->count.posts += (from) != (o)->comm->rank, take_hops(o, &(p)->hops))
#define count_data(c, bytes) ((c)->count.data_lines += ((bytes) + LINE - 1) / LINE)
#define count_written(c, bytes) ((c)->count.written_lines += ((bytes) + LINE - 1) / LINE)
#define count_folded(c, bytes) ((c)->count.folded_bytes += (bytes))
#define larger(a, b) ((a) > (b) ? (a) : (b))
#define take_hops(o, remote)                                                       \
    ((void)((o)->hops = larger(atomic_load_explicit(remote, memory_order_relaxed), (o)->hops)))
#define count_hops(o)                                                              \
    ((o)->comm->count.most_hops = larger((o)->hops, (o)->comm->count.most_hops))
#define set_word_hops(o, w, step)                                                  \
    atomic_store_explicit(hops_at(w, step), (o)->hops + 1, memory_order_relaxed)
#define set_post_hops(o, p)                                                        \
    atomic_store_explicit(&(p)->hops, (o)->hops + 1, memory_order_relaxed)

#else

#define HOPS_OF_WORD
#define HOPS_OF_POST
#define HOPS_BYTES 0
#define COUNTERS
#define count_word(o, from, w, step) ((void)0)
#define count_post(o, from, p) ((void)0)
#define count_data(c, bytes) ((void)0)
#define count_written(c, bytes) ((void)0)
#define count_folded(c, bytes) ((void)0)
#define count_hops(o) ((void)0)
#define set_word_hops(o, w, step) ((void)0)
#define set_post_hops(o, p) ((void)0)

#endif
#endif
