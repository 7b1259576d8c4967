/* A step of a parameter server, as an operation of a communicator. */
#ifndef HBMCOMM_UPDATE_H
#define HBMCOMM_UPDATE_H

#include "comm/comm.h"

int hbm_update_path(hbm_operation *o);

#endif
