/* Populating the steps of a heap's range, and returning idle ones to the system. */
#ifndef HBMCOMM_POPULATION_H
#define HBMCOMM_POPULATION_H

#include "memory/heap_state.h"

/* Populates missing steps under a range, without asking whether there is memory for them. */
int hbm_heap_fill(hbm_heap *h, uint64_t start, uint64_t end);

/* Returns idle steps beyond `keep` to the system. The caller holds the lock, which this function
   releases meanwhile. */
void hbm_heap_trim(hbm_heap *h);

#endif
