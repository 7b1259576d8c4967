/* Staging buffers from call to call, until their owner has left and uses their memory otherwise.

   Code: algorithms/rendezvous.c algorithms/pieces.c algorithms/reduce.c

   The owner stages one piece in each call and does not wait for the reader at the end. In the second
   call it uses the same buffer: after `calls` where pieces begin, after the reader's post where a
   reduction begins. It leaves after one call or two, while the reader may be in either. The word
   `staging` has the place of the buffers; it needs no order besides that of `ready`. */
#include "../weak.pml"
#define NO_RELEASE_OF_READY 1 /* signal_step() */
#define NO_ACQUIRE_OF_READY 2 /* reached() */
#define NO_RELEASE_OF_CALLS 3 /* hbm_progress() */
#define NO_ACQUIRE_OF_CALLS 4 /* hbm_has_completed() */
#define NO_WAIT_FOR_CALLS 5   /* hbm_staging_is_free() */
#define NO_RELEASE_OF_POST 6  /* publish() */
#define NO_ACQUIRE_OF_POST 7  /* hbm_find_post() */
#define NO_MEETING 8          /* hbm_reduce_agreed() hbm_enter() */
#define NO_RELEASE_OF_MARK 9  /* hbm_mark_left() */
#define NO_ACQUIRE_OF_MARK 10 /* hbm_all_left() */
#define NO_WAIT_FOR_READER 11 /* hbm_all_left() */

#define OTHER_USE 7
short staging, buffer, ready, calls, post;
bit failed, mark;

/* 0 staging, 1 the piece, 2 ready; 3 the buffer is free, 4 the piece, 5 ready; 6 failed; 7 the reader
   has left, 8 and 9 another use of the memory */
#define FREE (reduces -> NEEDS(NO_ACQUIRE_OF_POST, BIT(3)) : NEEDS(NO_ACQUIRE_OF_CALLS, BIT(3)))
#define IS_FREE (reduces -> post == 2 || LACKS(NO_MEETING) : calls >= 1 || LACKS(NO_WAIT_FOR_CALLS))
#define GONE NEEDS(NO_ACQUIRE_OF_MARK, BIT(7))
active proctype owner()
{
    int done = 0;
    bit reduces, leaves_early;
    select(reduces : 0 .. 1);
    select(leaves_early : 0 .. 1);
    if
    :: leaves_early -> done = BIT(3) | BIT(4) | BIT(5)
    :: else
    fi;
    do
    OP(0, 0, true, staging = 1)
    OP(1, 0, true, buffer = 1)
    OP(2, NEEDS(NO_RELEASE_OF_READY, BEFORE(2)), true, ready = 1)
    OP(3, 0, IS_FREE, skip)
    OP(4, BIT(1) | FREE, true, buffer = 2)
    OP(5, BIT(2) | NEEDS(NO_RELEASE_OF_READY, BEFORE(5)), true, ready = 2)
    OP(6, 0, true, failed = 1)
    OP(7, 0, mark || LACKS(NO_WAIT_FOR_READER), skip)
    OP(8, BIT(0) | GONE, true, staging = OTHER_USE)
    OP(9, BIT(1) | BIT(4) | GONE, true, buffer = OTHER_USE)
    :: done == BEFORE(10) -> break
    od
}

/* 0 ready, 1 staging, 2 the piece, 3 calls; 4 post; 5 ready or failed, 6 staging, 7 the piece; 8 mark */
#define READY(op) NEEDS(NO_ACQUIRE_OF_READY, BIT(op))
active proctype reader()
{
    int done = 0;
    bit came;
    do
    OP(0, 0, ready >= 1, skip)
    OP(1, READY(0), true, assert(staging == 1))
    OP(2, READY(0) | BIT(1), true, assert(buffer == 1))
    OP(3, BIT(0) | NEEDS(NO_RELEASE_OF_CALLS, BEFORE(3)), true, calls = 1)
    OP(4, BIT(0) | NEEDS(NO_RELEASE_OF_POST, BEFORE(4)), true, post = 2)
    OP(5, BIT(0), ready >= 2 || failed, came = (ready >= 2))
    OP(6, BIT(5) | BIT(1), true, assert(!came || staging == 1))
    OP(7, READY(5) | BIT(6), true, assert(!came || buffer == 2))
    OP(8, BIT(5) | NEEDS(NO_RELEASE_OF_MARK, BEFORE(8)), true, mark = 1)
    :: done == BEFORE(9) -> break
    od
}
