/* Barriers through groups of several levels: what a rank acquires it passes on.

   Code: algorithms/barrier.c

   Four ranks in two groups of two. A rank meets its mate, which is rank ^ 1, and then the rank of the
   other group at its own position, which is rank ^ 2. It also reads what rank ^ 3
   has written, which it never meets. hbm_enter() has the same shape, with posts and records
   in the places of the words `sync`. */
#include "../weak.pml"
#define NO_RELEASE_OF_RANK 1  /* signal_step() publish() */
#define NO_RELEASE_OF_GROUP 2 /* signal_step() publish(): of a larger group */
#define NO_ACQUIRE_OF_MATE 3  /* reached() hbm_find_post() */
#define NO_ACQUIRE_OF_GROUP 4 /* reached() hbm_find_post() */
#define NO_SECOND_LEVEL 5     /* hbm_sync() hbm_enter() */

#define RANKS 4
short data[RANKS], sync[2 * RANKS];
#define MINE(level) sync[(level) * RANKS + rank]
#define ITS(level) sync[(level) * RANKS + (rank ^ (1 << (level)))]

/* Barrier b, counted from 0: 0 the word of the rank, 1 that of its mate, 2 the word of the group, 3
   that of the other group. Operation 0 stores data; after the first barrier 4 and 5 of it load those
   of two other ranks; after the second barrier the rank stores data again. */
#define B(b, op) (1 + (b) * 6 + (op))
#define OLD(b, op) ((b) -> BIT(B((b) - 1, op)) : 0)
#define MATE(b) NEEDS(NO_ACQUIRE_OF_MATE, BIT(B(b, 1)))
#define MET(b) (MATE(b) | NEEDS(NO_ACQUIRE_OF_GROUP, BIT(B(b, 3))))
#define MEET(b)                                                                              \
    OP(B(b, 0), OLD(b, 0) | NEEDS(NO_RELEASE_OF_RANK, BEFORE(B(b, 0))), true, MINE(0) = (b) + 1) \
    OP(B(b, 1), OLD(b, 3), ITS(0) >= (b) + 1, skip)                                          \
    OP(B(b, 2), OLD(b, 2) | NEEDS(NO_RELEASE_OF_GROUP, BEFORE(B(b, 2))), true, MINE(1) = (b) + 1) \
    OP(B(b, 3), MATE(b), ITS(1) >= (b) + 1 || LACKS(NO_SECOND_LEVEL), skip)

active [RANKS] proctype member()
{
    int rank = _pid, done = 0;
    do
    OP(0, 0, true, data[rank] = 1)
    MEET(0)
    OP(B(0, 4), MET(0), true, assert(data[rank ^ 1] == 1))
    OP(B(0, 5), MET(0), true, assert(data[rank ^ 3] == 1))
    MEET(1)
    OP(B(1, 4), BIT(0) | MET(1), true, data[rank] = 2)
    :: done == BEFORE(B(1, 5)) -> break
    od
}
