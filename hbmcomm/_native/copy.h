/* How data goes through memory: in order, in pages in turn, or past the caches. */
#ifndef HBMCOMM_COPY_H
#define HBMCOMM_COPY_H

#include "layout.h"

enum { IN_ORDER, IN_TURN, STREAMING };

/* A stretch of an array is read from another core's cache in pages in turn, unless it is so short
   that the order does not matter, or the operation touches more than the cores' own caches hold. */
#define TURN_LEAST (128 * 1024)
#define TURN_MOST (4 * 1024 * 1024)
#define TURN_STEP 1024
#define TURN_PAGES 4
#define TURN_SPAN (TURN_PAGES * PAGE)

/* Where the i-th step begins: all steps of one span, then those of the next. */
static inline uint64_t in_turn(uint64_t i)
{
    uint64_t span = i / (TURN_SPAN / TURN_STEP), step = i % (TURN_SPAN / TURN_STEP);
    return span * TURN_SPAN + step % TURN_PAGES * PAGE + step / TURN_PAGES * TURN_STEP;
}

void hbm_copy(void *to, const void *from, uint64_t bytes);
void hbm_copy_in_turn(void *to, const void *from, uint64_t bytes);
void hbm_stream(void *to, const void *from, uint64_t bytes);
void hbm_stream_end(void);

#endif
