/* Preparing an operation from its call. */
#ifndef HBMCOMM_OPERATION_H
#define HBMCOMM_OPERATION_H

#include "communicator/comm.h"

/* Sets all fields that the call decides. HBM_COPY_FIRST: the call cannot begin with these
   arrays. */
int hbm_prepare(hbm_operation *o);

#endif
