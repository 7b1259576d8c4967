/* A control block that its owner uses again once its peers have left or died.

   Code: comm/departures.c

   A peer reads a word of the block and stores a byte in it. `leaver` then leaves. `victim` is killed at
   any moment; the kernel marks its claim after its last store. No peer reads what the owner stores in
   the block for another communicator, and no byte of theirs arrives in it. */
#include "../weak.pml"
#define NO_RELEASE_OF_MARK 1  /* hbm_mark_left() */
#define NO_ACQUIRE_OF_MARK 2  /* hbm_all_left() */
#define NO_ACQUIRE_OF_CLAIM 3 /* hbm_is_claimed() */
#define NO_WAIT_FOR_LEAVER 4  /* hbm_all_left() */
#define NO_WAIT_FOR_VICTIM 5  /* hbm_all_left() hbm_is_claimed() */

#define OTHER_USE 7
short shown = 1, asleep[2];
bit mark, dead;

active proctype leaver()
{
    int done = 0;
    do
    OP(0, 0, true, assert(shown == 1))
    OP(1, 0, true, asleep[0] = 1)
    OP(2, NEEDS(NO_RELEASE_OF_MARK, BEFORE(2)), true, mark = 1)
    :: done == BEFORE(3) -> break
    od
}

active proctype victim()
{
    int done = 0;
    do
    OP(0, 0, true, assert(shown == 1))
    OP(1, 0, true, asleep[1] = 1)
    :: atomic { true -> dead = 1; break }
    od
}

/* 0 the mark, 1 the claim, 2 to 4 another use of the block */
#define GONE (NEEDS(NO_ACQUIRE_OF_MARK, BIT(0)) | NEEDS(NO_ACQUIRE_OF_CLAIM, BIT(1)))
active proctype owner()
{
    int done = 0;
    do
    OP(0, 0, mark || LACKS(NO_WAIT_FOR_LEAVER), skip)
    OP(1, 0, dead || LACKS(NO_WAIT_FOR_VICTIM), skip)
    OP(2, GONE, true, shown = OTHER_USE)
    OP(3, GONE, true, asleep[0] = OTHER_USE)
    OP(4, GONE, true, asleep[1] = OTHER_USE)
    :: done == BEFORE(5) -> break
    od
}

active proctype when_nothing_else_can_happen()
{
    timeout;
    assert(asleep[0] == OTHER_USE && asleep[1] == OTHER_USE)
}
