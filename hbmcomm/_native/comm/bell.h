/* The bell: ranks that sleep until another rank moves, and waking them. */
#ifndef HBMCOMM_BELL_H
#define HBMCOMM_BELL_H

#include "comm/comm.h"

/* Wakes the ranks that sleep on this one. */
void hbm_ring(hbm_comm *c);

/* This thread sleeps on a rank, from nap to nap: that rank rings for each word that it stores. */
void hbm_begin_sleep(hbm_comm *c, int owner);
void hbm_end_sleep(hbm_comm *c, int owner);

/* In such a sleep: sleeps for at most `ns`, or until the word's owner rings. Does not sleep if the
   word has arrived. Returns whether a signal ended the nap. */
int hbm_nap(hbm_comm *c, const awaited *a, uint64_t ns);

#endif
