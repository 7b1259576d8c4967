/* The queue of operations of a communicator: only the first one advances. */
#ifndef HBMCOMM_PROGRESS_H
#define HBMCOMM_PROGRESS_H

#include "communicator/comm.h"

/* The communicator is locked. */
void hbm_append(hbm_operation *o);
void hbm_progress(hbm_comm *c);

/* Advances the operations in flight of this process, except those of `waiting`, which may be
   NULL. */
void hbm_progress_others(const hbm_comm *waiting);

#endif
