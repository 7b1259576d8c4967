/* Counters of a call's cost in cache lines, for tests alone: nothing unless HBM_COUNTERS is set.

   Remote lines are lines of other ranks' control blocks that this rank read, and lines of messages
   that it read from or wrote to other ranks' memory. A hop is a word that one rank wrote and
   another waited for: the longest chain of hops bounds the time of a call on any machine.

   A test may also record each store and read of a rank, in order (`events`); docs/costs.md derives
   expected times from that. */
#ifndef HBMCOMM_COUNTERS_H
#define HBMCOMM_COUNTERS_H

#ifdef HBM_COUNTERS

#include <stdatomic.h>
#include <stdint.h>

#define STEPS_COUNTED 16 /* a word keeps its last hops: others may read old ones late */
#define HOPS_OF_WORD _Atomic uint32_t hops[STEPS_COUNTED];
#define HOPS_OF_POST _Atomic uint32_t hops;
#define HOPS_BYTES 64

typedef struct {
    char kind;      /* s: stores a word; r: reads one of `rank`; d, w: reads or writes its data */
    int rank;
    uint64_t offset; /* offset of the word in its owner's control block */
    uint64_t value; /* the value stored or awaited; bytes */
} hbm_event;

#define COUNTERS                                                                   \
    struct {                                                                       \
        uint64_t words, posts, data_lines, written_lines, reduced_bytes, most_hops; \
        hbm_event *events;                                                         \
        uint64_t event_count, event_room; /* 0: nothing is recorded */           \
    } count;
#define record_event(c, ...)                                                          \
    ((c)->count.event_count < (c)->count.event_room                                \
         ? (void)((c)->count.events[(c)->count.event_count++] = (hbm_event){__VA_ARGS__}) : (void)0)
#define offset_of_word(c, owner, w)                                                 \
    ((uint64_t)((uintptr_t)(w) - (uintptr_t)(c)->peers[owner].control))
#define record_read(c, from, w, value)                                          \
    ((from) != (c)->rank && (value)                                                \
         ? record_event(c, 'r', from, offset_of_word(c, from, w), value) : (void)0)
#define record_store(c, w, value)                                               \
    record_event(c, 's', (c)->rank, offset_of_word(c, (c)->rank, w), value)
#define record_data(c, kind, other, bytes)                                      \
    ((other) != (c)->rank && (bytes) ? record_event(c, kind, other, 0, bytes) : (void)0)
#define hops_at(w, step) (&(w)->hops[(step) % STEPS_COUNTED])
#define count_word(o, from, w, step)                                               \
    (record_read((o)->comm, from, w, step),                                     \
     (o)->comm->count.words += (from) != (o)->comm->rank,                          \
     (void)((step) ? take_hops(o, hops_at(w, step)) : (void)0))
#define count_post(o, from, p)                                                     \
    (record_read((o)->comm, from, p, (o)->sequence),                            \
     (o)->comm->count.posts += (from) != (o)->comm->rank, take_hops(o, &(p)->hops))
#define lines_of(c, other, bytes) ((other) == (c)->rank ? 0 : ((bytes) + LINE - 1) / LINE)
#define count_data(c, from, bytes)                                                 \
    (record_data(c, 'd', from, bytes), (c)->count.data_lines += lines_of(c, from, bytes))
#define count_written(c, to, bytes)                                                \
    (record_data(c, 'w', to, bytes), (c)->count.written_lines += lines_of(c, to, bytes))
#define count_reduced(c, bytes) ((c)->count.reduced_bytes += (bytes))
#define larger(a, b) ((a) > (b) ? (a) : (b))
#define take_hops(o, remote)                                                       \
    ((void)((o)->hops = larger(atomic_load_explicit(remote, memory_order_relaxed), (o)->hops)))
#define count_hops(o)                                                              \
    ((o)->comm->count.most_hops = larger((o)->hops, (o)->comm->count.most_hops))
#define set_word_hops(o, w, step)                                                  \
    (record_store((o)->comm, w, at_step(o, step)),                              \
     atomic_store_explicit(hops_at(w, step), (o)->hops + 1, memory_order_relaxed))
#define set_post_hops(o, p)                                                        \
    (record_store((o)->comm, p, (o)->sequence),                                 \
     atomic_store_explicit(&(p)->hops, (o)->hops + 1, memory_order_relaxed))

#else

#define HOPS_OF_WORD
#define HOPS_OF_POST
#define HOPS_BYTES 0
#define COUNTERS
#define count_word(o, from, w, step) ((void)0)
#define count_post(o, from, p) ((void)0)
#define count_data(c, from, bytes) ((void)0)
#define count_written(c, to, bytes) ((void)0)
#define count_reduced(c, bytes) ((void)0)
#define count_hops(o) ((void)0)
#define set_word_hops(o, w, step) ((void)0)
#define set_post_hops(o, p) ((void)0)

#endif
#endif
