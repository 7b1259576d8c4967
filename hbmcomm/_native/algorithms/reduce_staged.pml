/* A reduction of two ranks through staging buffers, which inputs and results take in turn.

   Code: algorithms/reduce_staged.c algorithms/barrier.c

   Three pieces. The input of piece k is buffer 2k and holds 2k + 1; its result is buffer 2k + 1 and
   holds 2k + 2: so does `sync` when they are there. A rank announces the input of piece k + 1 before
   it waits for the results of piece k. */
#include "../weak.pml"
#define NO_RELEASE_OF_SYNC 1  /* signal_step() */
#define NO_ACQUIRE_OF_SYNC 2  /* reached() */
#define NO_FOURTH_BUFFER 3    /* offset_of() */
#define NO_WAIT_FOR_INPUTS 4  /* hbm_reduce_staged(): step 2k + 1 */
#define NO_WAIT_FOR_RESULTS 5 /* hbm_reduce_staged(): step 2k + 2 */

short sync[2], staged[8];
#define BUFFERS (LACKS(NO_FOURTH_BUFFER) -> 3 : 4)
#define STAGED(rank, n) staged[(rank) * 4 + (n) % BUFFERS]
#define OTHER (1 - rank)

/* Piece k: 0 the other has step 2k + 1, 1 loads its input, 2 stores a result, 3 step 2k + 2, 4 input
   k + 1, 5 step 2k + 3, 6 the other has step 2k + 2, 7 loads its result */
#define P(k, op) ((k) * 8 + (op))
#define OLD(k, op) ((k) -> BIT(P((k) - 1, op)) : 0)
#define BEGUN(k) NEEDS(NO_ACQUIRE_OF_SYNC, OLD(k, 6) | BIT(P(k, 0)))
#define REDUCED(k) NEEDS(NO_ACQUIRE_OF_SYNC, BIT(P(k, 0)) | BIT(P(k, 6)))
#define RELEASE(k, op) NEEDS(NO_RELEASE_OF_SYNC, BEFORE(P(k, op)))
#define PIECE(k)                                                                             \
    OP(P(k, 0), OLD(k, 6), sync[OTHER] >= 2 * (k) + 1 || LACKS(NO_WAIT_FOR_INPUTS), skip)    \
    OP(P(k, 1), BEGUN(k), true, assert(STAGED(OTHER, 2 * (k)) == 2 * (k) + 1))               \
    OP(P(k, 2), BEGUN(k) | BIT(P(k, 1)), true, STAGED(rank, 2 * (k) + 1) = 2 * (k) + 2)      \
    OP(P(k, 3), OLD(k, 5) | RELEASE(k, 3), true, sync[rank] = 2 * (k) + 2)                   \
    OP(P(k, 4), BEGUN(k), true, STAGED(rank, 2 * (k) + 2) = 2 * (k) + 3)                     \
    OP(P(k, 5), BIT(P(k, 3)) | RELEASE(k, 5), true, sync[rank] = 2 * (k) + 3)                \
    OP(P(k, 6), BIT(P(k, 0)), sync[OTHER] >= 2 * (k) + 2 || LACKS(NO_WAIT_FOR_RESULTS), skip) \
    OP(P(k, 7), REDUCED(k), true, assert(STAGED(OTHER, 2 * (k) + 1) == 2 * (k) + 2))

active [2] proctype member()
{
    int rank = _pid, done = 0;
    atomic { STAGED(rank, 0) = 1; sync[rank] = 1 } /* the first input and its announcement */
    do
    PIECE(0) PIECE(1) PIECE(2)
    :: done == BEFORE(P(3, 0)) -> break
    od
}
