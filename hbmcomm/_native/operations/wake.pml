/* A thread that starts an operation while another one goes to sleep or removes its hook, in C11.

   Code: operations/mpi_hooks.c

   An exchange is no fence: it orders the relaxed count before it for no thread that does not load
   what it stored. `IDLE` is `asleep` = 1 or `hooked` = 0. `ending` takes the place of the count when
   MPI ends. */
#include "../views.pml"
#define NO_FENCE_OF_START 1 /* wake_watcher() hbm_watch() */
#define NO_FENCE_OF_IDLE 2  /* watch() poll_for_mpich() */

#define COUNT 0
#define IDLE 1
bit sees_idle, sees_count;

active proctype starter()
{
    THREAD;
    STORE(COUNT);
    FENCE_SEQ_CST(NO_FENCE_OF_START);
    if
    :: LOAD(IDLE, sees_idle)                       /* `hooked` */
    :: atomic { sees_idle = (stored & IS(IDLE)) != 0 } /* an exchange has the newest value */
    fi
}

active proctype idle()
{
    THREAD;
    STORE(IDLE);
    FENCE_SEQ_CST(NO_FENCE_OF_IDLE);
    LOAD(COUNT, sees_count)
}

active proctype when_nothing_else_can_happen()
{
    timeout;
    assert(sees_idle || sees_count)
}
