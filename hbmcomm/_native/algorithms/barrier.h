/* Barriers among all ranks, at the beginning of a call and within it. */
#ifndef HBMCOMM_BARRIER_H
#define HBMCOMM_BARRIER_H

#include "comm/comm.h"

/* After hbm_post(): waits until all ranks have posted. o->flags are those that this rank posted,
   and become those that all ranks posted. */
int hbm_enter(hbm_operation *o);

/* This rank has reached a step of the call; it does not wait for the others yet. */
void hbm_signal_arrival(hbm_operation *o, uint64_t step);

/* Waits until all ranks have reached a step of this call. */
int hbm_sync(hbm_operation *o, uint64_t step);

#endif
