/* The thread that advances operations under an MPI without hooks.

   Code: operations/mpi_hooks.c

   The program starts an operation, the thread completes it, and the program ends MPI and joins the
   thread. A lost wake-up is a deadlock. */
#include "../weak.pml"
#define NO_FENCE_OF_WATCHER 1   /* watch() */
#define NO_ORDER_OF_WAKING 2    /* wake_watcher(): neither its fence nor the exchange's order */
#define NO_LOOK_AT_THE_END 3    /* watch(): at `ending`, after the fence */
#define NO_LOOK_AT_OPERATIONS 4 /* watch(): at their number, after the fence */

short in_flight;
bit asleep, ending, queued, ended;

#define WAKES(p) NEEDS(NO_ORDER_OF_WAKING, BEFORE(p))
/* 0 the number + 1, fence, 1 exchange of asleep, 2 the kernel wakes; the operation completes; 3
   ending, fence, 4 exchange, 5 wakes */
active proctype program()
{
    int done = 0;
    bit was[2];
    do
    OP(0, 0, true, in_flight++)
    OP(1, WAKES(1), true, was[0] = asleep; asleep = 0)
    OP(2, BIT(1), true, queued = (was[0] -> 0 : queued))
    OP(3, BEFORE(3), in_flight == 0, ending = 1)
    OP(4, BEFORE(3) | WAKES(4), true, was[1] = asleep; asleep = 0)
    OP(5, BIT(4) | BIT(2), true, queued = (was[1] -> 0 : queued))
    :: done == BEFORE(6) -> break
    od;
    ended
}

#define FENCED NEEDS(NO_FENCE_OF_WATCHER, BIT(0))
/* 0 asleep = 1, fence, 1 the number in flight, 2 ending */
active proctype watcher()
{
    int done;
    short active_now;
    bit ends;
    do
    :: ending -> break
    :: !ending ->
        done = 0;
        do
        OP(0, 0, true, asleep = 1)
        OP(1, FENCED, true, active_now = (LACKS(NO_LOOK_AT_OPERATIONS) -> 0 : in_flight))
        OP(2, FENCED, true, ends = (LACKS(NO_LOOK_AT_THE_END) -> 0 : ending))
        :: done == BEFORE(3) -> break
        od;
        if
        :: active_now || ends
        :: !active_now && !ends -> /* FUTEX_WAIT */
            if
            :: atomic { asleep -> queued = 1 }; !queued
            :: !asleep
            fi
        fi;
        asleep = 0;
        do /* polls until it was idle for a while */
        :: atomic { in_flight > 0 -> in_flight-- }
        :: in_flight == 0 || ending -> break
        od
    od;
    ended = 1
}
