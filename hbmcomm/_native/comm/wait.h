/* Waiting for a word of another rank, and for an operation to complete. */
#ifndef HBMCOMM_WAIT_H
#define HBMCOMM_WAIT_H

#include "comm/comm.h"

/* Completes an operation. The caller has locked its communicator. HBM_PENDING: a signal's handler
   asks this thread to leave. */
int hbm_complete(hbm_operation *o);

/* Waits until a word arrives, or the communicator has failed. Returns HBM_INTERRUPTED where a
   signal's handler asks this thread to leave. The caller has locked the communicator; this function
   unlocks it while it waits, and locks it again. It advances the other operations of this process,
   except those of `queue`, which may be NULL. */
int hbm_await(hbm_comm *c, const awaited *a, const hbm_comm *queue);

/* Waits a moment for what no word announces: yields the CPU, and sleeps once it has waited long. The
   rest is as hbm_await(). `since`: when this wait began. */
int hbm_pause(hbm_comm *c, uint64_t since);

#endif
