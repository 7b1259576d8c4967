/* Waiting for an operation to complete. */
#ifndef HBMCOMM_WAIT_H
#define HBMCOMM_WAIT_H

#include "communicator/comm.h"

/* Completes an operation. The caller has locked its communicator. HBM_PENDING: a signal's handler
   asks this thread to leave. */
int hbm_complete(hbm_operation *o);

#endif
