/* Preparing an operation from its call. */
#ifndef HBMCOMM_OPERATION_H
#define HBMCOMM_OPERATION_H

#include "comm/comm.h"

/* Sets all fields that the call decides. HBM_COPY_FIRST: the call cannot begin with these arrays.
   HBM_UNSERVED: it cannot begin on any rank. */
int hbm_prepare(hbm_operation *o);

/* The choice of an algorithm. */
/* Also sets how the operation copies, and whether it reads more of other ranks than their slots. */
advance hbm_path(hbm_operation *o);

#endif
