/* Reduce and allreduce of messages that all ranks work on: they post their arrays, agree on an
   algorithm and run it.

   Ordering: hbm_enter() is a barrier, so that all inputs are visible after it. All ranks have
   completed the call before, so the staging buffers are free.

   Model: rendezvous/staging.pml */
#include "reduce/agreed.h"
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "rendezvous/posts.h"
#include "rendezvous/slices.h"

enum { BEGINNING, MEETING };

int hbm_reduce_agreed(hbm_operation *o)
{
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, READ_BY_ALL);
        if (status)
            return status;
        o->flags = SAME_OFFSETS | (o->sends_from_arena ? IN_ARENA : 0)
                   | (o->receives_in_arena || !has_output(o, o->comm->rank) ? RECV_IN_ARENA : 0);
        hbm_post(o, NULL, 0, o->flags);
        o->stage = MEETING;
        /* fall through */
    default:
        status = hbm_enter(o);
        if (status)
            return status;
        o->stage = 0;
        o->advance = hbm_agreed_path(o);
        return o->advance(o);
    }
}
