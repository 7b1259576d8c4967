/* Algorithms that depend on what all ranks posted. */
#ifndef HBMCOMM_AGREED_H
#define HBMCOMM_AGREED_H

#include "comm/comm.h"

/* Whether ranks of a reduce-scatter pass hbm_enter() first, to find out if they can go by nodes. */
int hbm_agrees(const hbm_operation *o);

/* The algorithm of a reduce or an allreduce, after hbm_enter(). */
advance hbm_agreed_path(const hbm_operation *o);

#endif
