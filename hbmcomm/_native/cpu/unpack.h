/* Unpacking of received data into entries with gaps. */
#ifndef HBMCOMM_UNPACK_H
#define HBMCOMM_UNPACK_H

#include "api.h"

void hbm_unpack(const hbm_call *call);

#endif
