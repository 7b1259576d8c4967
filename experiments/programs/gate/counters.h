/* What a rank counts, in memory that it shares with the driver; experiments/jobs/gate.py reads it.
 *
 * Each counter has one band for each range of sizes; a call without a size is in the first one.
 * The driver writes `stopped` while the rank is stopped, and nothing else. The rank takes it from
 * its clock: a call does not last longer because its rank was stopped in it.
 */
#ifndef COUNTERS_H
#define COUNTERS_H

#include <stdint.h>

enum { BANDS = 6, NAME_BYTES = 32 };

static const uint64_t band_ends[BANDS - 2] = {256, 4096, 65536, 1 << 20}; /* bytes, of bands 1 on */

struct band {
    uint64_t calls, nanoseconds;
};

struct counter {
    char name[NAME_BYTES]; /* of the call without "MPI_"; empty behind the last one */
    uint64_t bytes;        /* that this rank gave, in calls that have one count and one datatype */
    struct band bands[BANDS];
};

struct page {
    uint64_t stopped; /* nanoseconds for which the rank was stopped so far */
    struct counter counters[];
};

#endif
