/* Preparing an operation from its call. */
#ifndef HBMCOMM_OPERATION_H
#define HBMCOMM_OPERATION_H

#include "communicator/comm.h"

/* Sets all fields that the call decides. HBM_COPY_FIRST: the call cannot begin with these arrays.
   HBM_UNSERVED: it cannot begin on any rank. */
int hbm_prepare(hbm_operation *o);

#endif
