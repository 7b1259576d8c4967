/* Copies: in order, alternating between pages, or past the caches. */
#ifndef HBMCOMM_COPY_H
#define HBMCOMM_COPY_H

#include "api.h"
#include "layout.h"

enum { IN_ORDER, IN_TURN, STREAMING };

/* A range of an array in another core's cache is read from several pages in turn, unless it is so
   short that the order does not matter, or the operation accesses more than the cores' own caches
   hold. */
#define TURN_LEAST (128 * 1024)
#define TURN_MOST (4 * 1024 * 1024)
#define TURN_STEP 1024
#define TURN_PAGES 4
#define TURN_SPAN (TURN_PAGES * PAGE)

/* The offset of the i-th step: all steps of one span, then those of the next. */
static inline uint64_t in_turn(uint64_t i)
{
    uint64_t span = i / (TURN_SPAN / TURN_STEP), step = i % (TURN_SPAN / TURN_STEP);
    return span * TURN_SPAN + step % TURN_PAGES * PAGE + step / TURN_PAGES * TURN_STEP;
}

void hbm_copy(void *to, const void *from, uint64_t bytes);
/* For memory that another core has written: alternates between four pages, because a CPU prefetches
   within a page, and in several pages at once. */
void hbm_copy_in_turn(void *to, const void *from, uint64_t bytes);
/* Bypasses the caches. hbm_stream_end() must come before the step that signals the copy. */
void hbm_stream(void *to, const void *from, uint64_t bytes);
void hbm_stream_end(void);

/* Unpacking of received data into entries with gaps. */
void hbm_unpack(const hbm_call *call);

#endif
