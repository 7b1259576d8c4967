/* The lock of a communicator, which is held while its operations advance. */
#ifndef HBMCOMM_LOCK_H
#define HBMCOMM_LOCK_H

#include "comm/comm.h"

/* LOCKED: a thread advances the operations, however briefly. INSIDE: a thread is in a blocking
   call, from its beginning to its end; a second such thread is refused. */
enum { LOCKED = 1, INSIDE = 2 };

/* Sets `bits` unless one of `refused` is set; whether it did. */
static inline int try_lock(hbm_comm *c, int bits, int refused)
{
    int held = atomic_load_explicit(&c->lock, memory_order_relaxed);
    return !(held & refused)
           && atomic_compare_exchange_strong_explicit(&c->lock, &held, held | bits,
                                                      memory_order_acquire, memory_order_relaxed);
}

/* For a blocking call, for starting an operation, and for waiting for one that was started. Only
   HBM_OK means that the communicator is locked. */
int hbm_enter_call(hbm_comm *c);
int hbm_enter_start(hbm_comm *c);
int hbm_enter_wait(hbm_comm *c);
void hbm_leave_call(hbm_comm *c);
void hbm_leave_wait(hbm_comm *c); /* ends hbm_enter_start too */

/* Within a call: lets other threads advance the operations meanwhile. */
void hbm_unlock(hbm_comm *c);
void hbm_lock_again(hbm_comm *c);

#endif
