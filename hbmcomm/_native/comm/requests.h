/* Operations by number: a number outlives its operation, and then no longer names one. */
#ifndef HBMCOMM_REQUESTS_H
#define HBMCOMM_REQUESTS_H

#include "comm/comm.h"

/* The number of an operation that hbm_start_once() has started; above HBM_LAST_STATUS. */
uint64_t hbm_number_of(const hbm_operation *o);

/* The operation of a number. NULL: it was complete and its status was returned. */
hbm_operation *hbm_numbered(uint64_t number);

/* The same for one thread of all that ask, which drops it. The number names nothing then. */
hbm_operation *hbm_retire(uint64_t number);

/* Generalized requests of MPI for our operations. `request` is the address of a request object of
   mpi4py, or 0. */
/* Makes a request for an operation that is locked and not complete, so that MPI can wait for it. */
void hbm_begin_request(hbm_operation *o, uintptr_t request);

/* The operation is complete: threads that wait for it in MPI may continue. On a thread that may not
   call MPI, the request ends when one that may calls hbm_end_requests(). */
void hbm_end_request(hbm_operation *o);
void hbm_end_requests(void);

/* Frees the handle after a wait in this library. */
void hbm_free_request(hbm_operation *o, uintptr_t request);

/* A complete request, for an operation that was complete when it was started. */
void hbm_complete_request(uintptr_t request);

/* Frees the complete requests that are kept. */
void hbm_free_stock(void);

#endif
