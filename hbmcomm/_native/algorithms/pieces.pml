/* Pieces through the staging buffers of their sender.

   Code: algorithms/pieces.c algorithms/exchange.c

   One sender and one receiver, BUFFERS buffers. A call has three pieces; the next call has one, in
   the next buffer. The sender ends the first call without a wait, as after a reduction: the next
   one begins with hbm_staging_is_free(). */
#include "../weak.pml"
#define NO_RELEASE_OF_READY 1 /* signal_step() */
#define NO_ACQUIRE_OF_READY 2 /* reached() */
#define NO_RELEASE_OF_DONE 3  /* signal_step() */
#define NO_ACQUIRE_OF_DONE 4  /* reached() */
#define NO_WAIT_FOR_DONE 5    /* hbm_produce() */
#define NO_RELEASE_OF_CALLS 6 /* hbm_progress() */
#define NO_ACQUIRE_OF_CALLS 7 /* hbm_has_completed() */
#define NO_WAIT_FOR_CALLS 8   /* hbm_staging_is_free() */

#define BUFFERS 2
short buffer[BUFFERS], more[BUFFERS], ready, consumed, calls;
#define AT(p) ((p) % BUFFERS)

/* Piece p: 4p may write, 4p + 1 and 4p + 2 write, 4p + 3 ready */
#define S(p, op) (4 * (p) + (op))
#define OLD_S(p, op) ((p) -> BIT(S((p) - 1, op)) : 0)
#define SAME(p, op) ((p) >= BUFFERS -> BIT(S((p) - BUFFERS, op)) : 0)
#define FREE(p) ((p) < BUFFERS -> 0 : ((p) == 3 -> NEEDS(NO_ACQUIRE_OF_CALLS, BIT(S(3, 0))) \
                                                : NEEDS(NO_ACQUIRE_OF_DONE, BIT(S(p, 0)))))
#define PUT(p, may_write)                                                                   \
    OP(S(p, 0), OLD_S(p, 0), may_write, skip)                                               \
    OP(S(p, 1), FREE(p) | SAME(p, 1), true, buffer[AT(p)] = (p) + 1)                        \
    OP(S(p, 2), FREE(p) | SAME(p, 2), true, more[AT(p)] = (p) + 1)                          \
    OP(S(p, 3), OLD_S(p, 3) | NEEDS(NO_RELEASE_OF_READY, BEFORE(S(p, 3))), true, ready = (p) + 1)

active proctype sender()
{
    int done = 0;
    do
    PUT(0, true)
    PUT(1, true)
    PUT(2, consumed >= 1 || LACKS(NO_WAIT_FOR_DONE))
    PUT(3, calls >= 1 || LACKS(NO_WAIT_FOR_CALLS))
    :: done == BEFORE(16) -> break
    od
}

/* Piece p: 4p ready, 4p + 1 and 4p + 2 read, 4p + 3 done; 16 completes the first call */
#define FOUND(p) (OLD_S(p, 0) | NEEDS(NO_ACQUIRE_OF_READY, BIT(S(p, 0))))
#define TAKE(p, later)                                                                      \
    OP(S(p, 0), OLD_S(p, 0), ready >= (p) + 1, skip)                                        \
    OP(S(p, 1), FOUND(p), true, assert(buffer[AT(p)] == (p) + 1))                           \
    OP(S(p, 2), FOUND(p), true, assert(more[AT(p)] == (p) + 1))                             \
    OP(S(p, 3), OLD_S(p, 3) | BIT(S(p, 0)) | NEEDS(NO_RELEASE_OF_DONE, BEFORE(S(p, 3)) | (later)), \
       true, consumed = (p) + 1)

active proctype receiver()
{
    int done = 0;
    do
    TAKE(0, 0) TAKE(1, 0) TAKE(2, 0)
    OP(16, BIT(S(2, 0)) | NEEDS(NO_RELEASE_OF_CALLS, BEFORE(12)), true, calls = 1)
    TAKE(3, BIT(16))
    :: done == BEFORE(17) -> break
    od
}
