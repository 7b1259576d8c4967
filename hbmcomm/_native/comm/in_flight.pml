/* Operations in flight and MPICH's hook, which advances them and goes when it was idle for long.

   Code: comm/progress.c operations/mpi_hooks.c

   Two threads start an operation each and then wait in MPI: only a hook completes their operations.
   An operation without a hook is a deadlock. */
#include "../weak.pml"
#define NO_FENCE_OF_REMOVAL 1 /* poll_for_mpich(): after hooked = 0 */
#define NO_FENCE_OF_START 2   /* hbm_watch(): before the look at `hooked` */
#define NO_SECOND_LOOK 3      /* poll_for_mpich(): at their number, after the fence */

short in_flight, hooks;
bit hooked;

/* 0 hooked = 0, fence, 1 the number in flight, 2 exchange of hooked */
proctype hook()
{
    int done;
    short active_now;
    bit was;
end:
    do
    :: atomic { in_flight > 0 -> in_flight-- }
    :: in_flight == 0 -> /* for as long as it likes */
        done = 0;
        do
        OP(0, 0, true, hooked = 0)
        OP(1, NEEDS(NO_FENCE_OF_REMOVAL, BIT(0)), true,
           active_now = (LACKS(NO_SECOND_LOOK) -> 0 : in_flight))
        OP(2, BEFORE(2), active_now > 0, was = hooked; hooked = 1)
        :: done == BEFORE(2) && active_now == 0 -> was = 1; break
        :: done == BEFORE(3) -> break
        od;
        if
        :: was -> break
        :: else /* it stays */
        fi
    od;
    hooks--
}

/* 0 the number + 1, fence, 1 hooked, 2 exchange of hooked, which registers a hook */
active [2] proctype starter()
{
    int done = 0;
    bit is_hooked, was;
    do
    OP(0, 0, true, in_flight++)
    OP(1, NEEDS(NO_FENCE_OF_START, BIT(0)), true, is_hooked = hooked)
    OP(2, BIT(1), !is_hooked, was = hooked; hooked = 1)
    :: (done == BEFORE(2) && is_hooked) || done == BEFORE(3) -> break
    od;
    if
    :: !is_hooked && !was ->
        atomic {
            hooks++;
            assert(hooks <= 2); /* a new one, and one that goes */
            run hook()
        }
    :: else
    fi;
    in_flight == 0
}
