/* Leaving a communicator.

   Ordering: hbm_blame() publishes that this rank has left, by a release store after all that this
   rank has read or written. */
#include "comm/failure.h"
#include "comm/progress.h"
#include "comm/lock.h"

/* Ranks that still wait for this one see that it has left; its own calls are refused. The segments
   may be unmapped after this, unless another thread is inside a call (HBM_BUSY).

   The control block and the staging buffers stay: a slower rank may still read them, in a call that
   this rank has completed. The caller frees them once all ranks have left or died. */
int hbm_close(hbm_comm *c)
{
    int status = hbm_enter_call(c);
    if (status)
        return status;
    int was_beside = hbm_set_beside(1); /* Python may free a communicator on any thread */
    if (!c->is_closed) {
        c->is_closed = 1;
        hbm_blame(c, HBM_CLOSED, c->rank);
        hbm_progress(c);
        hbm_unlist(c);
    }
    c->ring_later = 0; /* hbm_blame() has rung; the words may belong to another communicator now */
    hbm_set_beside(was_beside);
    hbm_leave_call(c);
    return HBM_OK;
}
