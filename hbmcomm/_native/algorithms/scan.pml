/* A scan in pieces: each rank passes its result on to the next.

   Code: algorithms/scan.c

   Three ranks, three pieces, DEPTH buffers. A result is the number of ranks in it. */
#include "../weak.pml"
#define NO_RELEASE_OF_READY 1 /* signal_step() */
#define NO_ACQUIRE_OF_READY 2 /* reached() */
#define NO_RELEASE_OF_DONE 3  /* signal_step() */
#define NO_ACQUIRE_OF_DONE 4  /* reached() */
#define NO_WAIT_FOR_DONE 5    /* hbm_scan() */

#define DEPTH 2
#define RANKS 3
short staged[RANKS * DEPTH], ready[RANKS], consumed[RANKS];
#define AT(rank, k) ((rank) * DEPTH + (k) % DEPTH)
#define RESULT(k, ranks) ((k) * 10 + (ranks))

/* Piece k: 0 ready of the rank before, 1 done of the next rank, 2 reads, 3 writes, 4 ready, 5 done */
#define P(k, op) ((k) * 6 + (op))
#define OLD(k, op) ((k) -> BIT(P((k) - 1, op)) : 0)
#define LOADED(k) (OLD(k, 0) | NEEDS(NO_ACQUIRE_OF_READY, BIT(P(k, 0))))
#define FREE(k) ((k) < DEPTH -> 0 : NEEDS(NO_ACQUIRE_OF_DONE, BIT(P(k, 1))))
#define PIECE(k)                                                                            \
    OP(P(k, 0), OLD(k, 0), rank == 0 || ready[(rank + 2) % 3] >= (k) + 1, skip)             \
    OP(P(k, 1), OLD(k, 1), rank == 2 || (k) < DEPTH || LACKS(NO_WAIT_FOR_DONE)              \
                               || consumed[(rank + 1) % 3] >= (k) - DEPTH + 1, skip)        \
    OP(P(k, 2), LOADED(k), true,                                                            \
       assert(rank == 0 || staged[AT((rank + 2) % 3, k)] == RESULT(k, rank)))               \
    OP(P(k, 3), BIT(P(k, 2)) | FREE(k), true, staged[AT(rank, k)] = RESULT(k, rank + 1))    \
    OP(P(k, 4), OLD(k, 4) | NEEDS(NO_RELEASE_OF_READY, BEFORE(P(k, 4))), true,              \
       ready[rank] = (k) + 1)                                                               \
    OP(P(k, 5), OLD(k, 5) | NEEDS(NO_RELEASE_OF_DONE, BEFORE(P(k, 5))), true,               \
       consumed[rank] = (k) + 1)

active [RANKS] proctype member()
{
    int rank = _pid, done = 0;
    do
    PIECE(0) PIECE(1) PIECE(2)
    :: done == BEFORE(P(3, 0)) -> break
    od
}
