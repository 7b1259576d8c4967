/* The choice of an algorithm. */
#ifndef HBMCOMM_PATHS_H
#define HBMCOMM_PATHS_H

#include "communicator/comm.h"

/* Also sets how the operation copies, and whether it reads more of other ranks than their slots. */
advance hbm_path(hbm_operation *o);

#endif
