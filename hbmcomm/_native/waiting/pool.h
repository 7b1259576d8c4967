/* Operations by number: a number outlives its operation, and then no longer names one. */
#ifndef HBMCOMM_POOL_H
#define HBMCOMM_POOL_H

#include "communicator/comm.h"

/* The number of an operation that hbm_start_once() has started; above HBM_LAST_STATUS. */
uint64_t hbm_number_of(const hbm_operation *o);

/* The operation of a number. NULL: it was complete and its status was returned. */
hbm_operation *hbm_numbered(uint64_t number);

/* The same for one thread of all that ask, which drops it. The number names nothing then. */
hbm_operation *hbm_retire(uint64_t number);

#endif
