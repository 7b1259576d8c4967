/* A rank that fails and uses its memory again, while others are in the call.

   Code: comm/failure.c comm/progress.c algorithms/reduce_staged.c algorithms/scan.c

   `giver` fails at any moment. Its program then overwrites the array that it sent, and, after all
   others have stopped, the array in which it received. `second` copies from the giver, writes into
   that second array, and passes its copy on to `third` (copy_pieces in algorithms/broadcast.c). Where
   the copy is a reduction, a function of the program may fail in it: then there is no result. A
   rank that completes the call has the data of the call. No write of a rank arrives in memory that
   its owner uses again. */
#include "../weak.pml"
#define NO_FENCE_OF_FAIL 1        /* hbm_fail() */
#define NO_RELEASE_OF_FAILED 2    /* hbm_fail() */
#define NO_ACQUIRE_OF_FAILED 3    /* hbm_find_failure(), hbm_was_abandoned() */
#define NO_FENCE_OF_ABANDONED 4   /* hbm_was_abandoned() */
#define NO_RELEASE_OF_STOPPED 5   /* mark_stopped() */
#define NO_ACQUIRE_OF_STOPPED 6   /* hbm_all_stopped() */
#define NO_RELEASE_OF_READY 7     /* signal_step() */
#define NO_ACQUIRE_OF_READY 8     /* reached() */
#define NO_WAIT_FOR_STOPPED 9     /* hbm_all_stopped() */
#define NO_STATUS_BEFORE_STEP 10  /* reduce_slice(), reduce_piece() */

short given = 1, copy, received, record;
bit failed, ready, stopped;

/* 0 record, 1 failed, fence, 2 the program writes, 3 the other has stopped, 4 it writes again */
active proctype giver()
{
    int done = 0;
end:
    do
    OP(0, 0, true, record = 9)
    OP(1, NEEDS(NO_RELEASE_OF_FAILED, BIT(0)), true, failed = 1)
    OP(2, NEEDS(NO_FENCE_OF_FAIL, BEFORE(2)), true, given = 2)
    OP(3, 0, stopped || LACKS(NO_WAIT_FOR_STOPPED), skip)
    OP(4, NEEDS(NO_ACQUIRE_OF_STOPPED, BIT(3)), true, received = 7)
    od
}

/* 0 loads the array, 1 its copy unless it errs, 2 ready, 3 writes into the giver's array, fence, 4 failed; then
   5 the record and 6 stopped */
active proctype second()
{
    int done = 0;
    short loaded, why;
    bit fails, errs;
    if
    :: errs = 0
    :: errs = 1
    fi;
    do
    OP(0, 0, true, loaded = given)
    OP(1, BIT(0), true, copy = (errs -> 8 : loaded))
    OP(2, NEEDS(NO_RELEASE_OF_READY, BEFORE(2)), !errs || LACKS(NO_STATUS_BEFORE_STEP), ready = 1)
    OP(3, 0, !errs, received = 5)
    OP(4, NEEDS(NO_FENCE_OF_ABANDONED, BIT(0)), true, fails = failed)
    OP(5, NEEDS(NO_ACQUIRE_OF_FAILED, BIT(4)), true, why = record)
    OP(6, BIT(4) | NEEDS(NO_RELEASE_OF_STOPPED, BEFORE(6)), fails, stopped = 1)
    :: done == BEFORE(7) || (done == BEFORE(6) && !fails) -> break
    :: errs && (done & BIT(1)) && (done & BIT(2) || !LACKS(NO_STATUS_BEFORE_STEP)) -> goto over
    od;
    assert(fails || loaded == 1);
    assert(!fails || why == 9);
over:
    skip
}

/* 0 ready, 1 the copy, fence, 2 failed */
active proctype third()
{
    int done = 0;
    short loaded;
    bit fails;
end:
    do
    OP(0, 0, ready, skip)
    OP(1, NEEDS(NO_ACQUIRE_OF_READY, BIT(0)), true, loaded = copy)
    OP(2, BIT(0) | NEEDS(NO_FENCE_OF_ABANDONED, BIT(1)), true, fails = failed)
    :: done == BEFORE(3) -> break
    od;
    assert(fails || loaded == 1)
}

active proctype when_nothing_else_can_happen()
{
    timeout;
    assert(received != 5 || !stopped)
}
