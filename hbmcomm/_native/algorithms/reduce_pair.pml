/* An allreduce of two ranks, in place, through the staging buffers of both.

   Code: algorithms/reduce_pair.c

   Three pieces, BUFFERS buffers. A rank puts a piece once it has reduced the one AHEAD before. With
   at most BUFFERS ahead, a rank never reduces a piece in place before it has put that piece into a
   buffer: where the other rank has put it, there is room for the own one too. */
#include "../weak.pml"
#define NO_RELEASE_OF_READY 1 /* signal_step() */
#define NO_ACQUIRE_OF_READY 2 /* reached() */
#define NO_RELEASE_OF_DONE 3  /* signal_step() */
#define NO_ACQUIRE_OF_DONE 4  /* reached() */
#define NO_WAIT_FOR_DONE 5    /* put() */
#define NO_LIMIT_AHEAD 6      /* hbm_reduce_pair() */

#define PIECES 3
#define BUFFERS 2
#define AHEAD 2
short array[2 * PIECES], staged[2 * BUFFERS], ready[2], consumed[2];
#define OWN(k) array[rank * PIECES + (k)]
#define STAGED(rank, k) staged[(rank) * BUFFERS + (k) % BUFFERS]
#define INPUT(rank, k) (100 + 10 * (k) + (rank))
#define OTHER (1 - rank)

/* Piece k: 0 done of the other, 1 copies into a buffer, 2 ready; 3 ready of the other, 4 loads its
   piece, 5 stores the result, 6 done */
#define P(k, op) ((k) * 7 + (op))
#define OLD(k, op) ((k) -> BIT(P((k) - 1, op)) : 0)
#define EARLIER(k) ((k) < AHEAD || LACKS(NO_LIMIT_AHEAD) -> 0 : BEFORE(P((k) - AHEAD + 1, 0)))
#define FREE(k) ((k) < BUFFERS -> 0 : NEEDS(NO_ACQUIRE_OF_DONE, BIT(P(k, 0))))
#define PIECE(k)                                                                             \
    OP(P(k, 0), OLD(k, 0) | (EARLIER(k) & BIT(P((k) - AHEAD, 3))),                                               \
       (k) < BUFFERS || LACKS(NO_WAIT_FOR_DONE) || consumed[OTHER] >= (k) - BUFFERS + 1, skip) \
    OP(P(k, 1), FREE(k), true, assert(OWN(k) == INPUT(rank, k)); STAGED(rank, k) = OWN(k))   \
    OP(P(k, 2), OLD(k, 2) | BIT(P(k, 0)) | NEEDS(NO_RELEASE_OF_READY, BIT(P(k, 1)) | EARLIER(k)), \
       true, ready[rank] = (k) + 1)                                                          \
    OP(P(k, 3), OLD(k, 3), ready[OTHER] >= (k) + 1,                                          \
       assert((k) < BUFFERS || LACKS(NO_WAIT_FOR_DONE)                                       \
              || consumed[OTHER] >= (k) - BUFFERS + 1))                                      \
    OP(P(k, 4), NEEDS(NO_ACQUIRE_OF_READY, BIT(P(k, 3))), true,                              \
       assert(STAGED(OTHER, k) == INPUT(OTHER, k)))                                          \
    OP(P(k, 5), BIT(P(k, 4)) | BIT(P(k, 1)), true, OWN(k) = 1)                               \
    OP(P(k, 6), OLD(k, 6) | BIT(P(k, 3)) | NEEDS(NO_RELEASE_OF_DONE, BIT(P(k, 4)) | BIT(P(k, 5))), \
       true, consumed[rank] = (k) + 1)

active [2] proctype member()
{
    int rank = _pid, done = 0;
    OWN(0) = INPUT(rank, 0);
    OWN(1) = INPUT(rank, 1);
    OWN(2) = INPUT(rank, 2);
    do
    PIECE(0) PIECE(1) PIECE(2)
    :: done == BEFORE(P(3, 0)) -> break
    od
}
