/* The bell: ranks that sleep until another rank moves, and waking them. */
#ifndef HBMCOMM_BELL_H
#define HBMCOMM_BELL_H

#include "communicator/comm.h"

/* Wakes the ranks that sleep on this one. */
void hbm_ring(hbm_comm *c);

/* Sleeps for at most `ns`, less than a second, or until the word's owner rings. Does not sleep if
   the word has arrived. Returns whether a signal ended the sleep. */
int hbm_nap(hbm_comm *c, const awaited *a, uint64_t ns);

#endif
