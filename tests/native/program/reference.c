/* The expected result of each call, in the simplest code: one entry at a time, no shared memory. */
#include "entries.h"

#define PERIOD 1009 /* of contents: a prime, so that no piece or block is a multiple of it */

static int sends_to_each(const hbm_call *call)
{
    switch (call->operation) {
    case HBM_SCATTER:
    case HBM_SCATTERV:
    case HBM_ALLTOALL:
    case HBM_ALLTOALLV:
    case HBM_REDUCE_SCATTER_BLOCK:
    case HBM_REDUCE_SCATTER: return 1;
    default: return 0;
    }
}

int differs_in_length(const hbm_call *call)
{
    return (call->operation >= HBM_GATHERV && call->operation <= HBM_ALLTOALLV)
           || call->operation == HBM_REDUCE_SCATTER;
}

static int is_from_root(const hbm_call *call)
{
    return call->operation == HBM_BCAST || call->operation == HBM_SCATTER
           || call->operation == HBM_SCATTERV;
}

static int is_to_root(const hbm_call *call)
{
    return call->operation == HBM_GATHER || call->operation == HBM_GATHERV
           || call->operation == HBM_REDUCE;
}

/* The number of entries that a rank has for another. */
uint64_t entries_between(const hbm_call *call, uint64_t seed, int from, int to)
{
    uint64_t most = call->count, which = 0;
    if (!differs_in_length(call))
        return most;
    if (sends_to_each(call))
        which = (uint64_t)to + 1;
    if (!sends_to_each(call) || call->operation == HBM_ALLTOALLV)
        which |= (uint64_t)from << 16;
    uint64_t drawn = mixed(seed ^ which << 20);
    return drawn % 4 ? drawn / 4 % (most + 1) : drawn / 4 % 2 * most;
}

/* Entries between blocks of different lengths: none of these may be written. */
static uint64_t gap(const hbm_call *call, int rank)
{
    int has_gaps = differs_in_length(call) && call->operation != HBM_REDUCE_SCATTER;
    return has_gaps ? (uint64_t)rank % 3 : 0;
}

span sent_to(const hbm_call *call, uint64_t seed, int rank, int to)
{
    span s = {0, 0};
    if (call->operation == HBM_BARRIER || call->operation >= HBM_FOREIGN
        || (is_from_root(call) && rank != call->root))
        return s;
    for (int r = 0; r < to && sends_to_each(call); r++)
        s.first += entries_between(call, seed, rank, r) + gap(call, r);
    s.count = entries_between(call, seed, rank, to);
    return s;
}

static int receives_from_each(const hbm_call *call)
{
    return call->operation >= HBM_GATHER && call->operation <= HBM_ALLTOALLV && !is_from_root(call);
}

span received_from(const hbm_call *call, uint64_t seed, int rank, int from)
{
    span s = {0, 0};
    if (call->operation == HBM_BARRIER || call->operation >= HBM_FOREIGN
        || (is_to_root(call) && rank != call->root))
        return s;
    for (int r = 0; r < from && receives_from_each(call); r++)
        s.first += entries_between(call, seed, r, rank) + gap(call, r);
    s.count = entries_between(call, seed, from, rank);
    return s;
}

uint64_t entries_sent(const hbm_call *call, uint64_t seed, int size, int rank)
{
    span last = sent_to(call, seed, rank, sends_to_each(call) ? size - 1 : 0);
    return last.first + last.count;
}

uint64_t entries_received(const hbm_call *call, uint64_t seed, int size, int rank)
{
    span last = received_from(call, seed, rank, receives_from_each(call) ? size - 1 : 0);
    return last.first + last.count;
}

static void entry_of(const hbm_call *call, uint64_t seed, int from, int to, uint64_t index,
                     unsigned char *at)
{
    uint64_t pair = (uint64_t)from << 48 | (sends_to_each(call) ? (uint64_t)to << 40 : 0);
    make_entry(call->dtype, mixed(seed ^ pair ^ index % PERIOD), at);
}

/* Repeats the first PERIOD of `n` entries. */
static void repeat(unsigned char *at, uint64_t n, uint64_t bytes)
{
    for (uint64_t i = PERIOD; i < n; i += PERIOD)
        memcpy(at + i * bytes, at, (n - i < PERIOD ? n - i : PERIOD) * bytes);
}

void fill_input(const hbm_call *call, uint64_t seed, int size, int rank, void *memory)
{
    uint64_t bytes = hbm_dtype_size(call->dtype);
    for (int to = 0; to < (sends_to_each(call) ? size : 1); to++) {
        span s = sent_to(call, seed, rank, to);
        unsigned char *at = (unsigned char *)memory + s.first * bytes;
        for (uint64_t i = 0; i < s.count && i < PERIOD; i++)
            entry_of(call, seed, rank, to, i, at + i * bytes);
        repeat(at, s.count, bytes);
    }
}

/* Reduces an entry of all ranks before `end`, in their order. */
static void reduce_entries(const hbm_call *call, uint64_t seed, int end, int rank,
                           uint64_t index, unsigned char *to)
{
    unsigned char raw[sizeof(number)]; /* room for any entry */
    entry_of(call, seed, 0, rank, index, to);
    if (end == 1)
        return;
    number sum = {.u = 0};
    if (family_of(call->dtype) != PAIR)
        sum = load(call->dtype, to);
    for (int r = 1; r < end; r++) {
        entry_of(call, seed, r, rank, index, raw);
        if (family_of(call->dtype) == PAIR)
            reduce_pair(call, to, raw);
        else
            sum = reduce(call, sum, load(call->dtype, raw));
    }
    if (family_of(call->dtype) != PAIR)
        store(call->dtype, sum, to);
}

/* The expected contents of the receive buffer; `memory` begins with its contents before the
   call. */
void expect_output(const hbm_call *call, uint64_t seed, int size, int rank, void *memory)
{
    uint64_t bytes = hbm_dtype_size(call->dtype);
    int end = call->operation == HBM_SCAN ? rank + 1 : call->operation == HBM_EXSCAN ? rank : size;
    for (int from = 0; from < (receives_from_each(call) ? size : 1); from++) {
        int source = is_from_root(call) ? call->root : from;
        span s = received_from(call, seed, rank, source);
        unsigned char *at = (unsigned char *)memory + s.first * bytes;
        for (uint64_t i = 0; i < s.count && i < PERIOD && end; i++)
            if (call->operation >= HBM_REDUCE)
                reduce_entries(call, seed, end, rank, i, at + i * bytes);
            else
                entry_of(call, seed, source, rank, i, at + i * bytes);
        if (end)
            repeat(at, s.count, bytes);
    }
}

/* Compares bytes, except for the padding of long doubles and pairs. */
int same_output(const hbm_call *call, const void *output, const void *expected, uint64_t entries)
{
    uint64_t bytes = hbm_dtype_size(call->dtype);
    if (!entries || !memcmp(output, expected, entries * bytes))
        return 1;
    for (uint64_t i = 0; i < entries; i++)
        if (!same_entry(call->dtype, (const unsigned char *)output + i * bytes,
                        (const unsigned char *)expected + i * bytes))
            return 0;
    return 1;
}
