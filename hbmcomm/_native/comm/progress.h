/* The queue of operations of a communicator: only the first one advances. */
#ifndef HBMCOMM_PROGRESS_H
#define HBMCOMM_PROGRESS_H

#include "comm/comm.h"

/* The communicator is locked. */
void hbm_append(hbm_operation *o);
void hbm_progress(hbm_comm *c);

/* Advances a communicator that nobody waits in, unless another thread does. */
void hbm_advance(hbm_comm *c);

/* Advances the operations in flight of this process, except those of `waiting`, which may be
   NULL. */
void hbm_progress_others(const hbm_comm *waiting);

/* The operations of this process that are in flight outside blocking calls: every wait of the
   process advances them. */
extern _Atomic int hbm_in_flight_count; /* how many there are */

/* Adds an operation; its communicator is locked. */
void hbm_set_in_flight(hbm_operation *o);

/* The operation is complete. */
static inline void clear_in_flight(hbm_operation *o)
{
    atomic_fetch_sub_explicit(&o->comm->in_flight, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&hbm_in_flight_count, 1, memory_order_relaxed);
}

/* Lists at most `most` communicators that have such operations now, with a reference to each: those
   with the highest numbers below `below`, in falling order. */
int hbm_list_active(hbm_comm **active, int most, uint64_t below);

/* The communicator has no operations in flight, and will have none. */
void hbm_unlist(hbm_comm *c);

#endif
