/* The operations of this process that are in flight outside blocking calls: every wait of the
   process advances them. */
#ifndef HBMCOMM_IN_FLIGHT_H
#define HBMCOMM_IN_FLIGHT_H

#include "communicator/comm.h"

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
