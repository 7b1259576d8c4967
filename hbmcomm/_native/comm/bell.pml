/* Sleep and wake-up of ranks that share CPUs.

   Code: comm/bell.c

   The owner stores two words, and rings after each. A rank waits for one after the other, and sleeps
   without the time limit of a nap: a lost wake-up is a deadlock, an invalid end state for the
   checker. NO_FENCE_OF_OWNER is the code for ranks with a CPU each: there a wake-up can be lost in the
   first nap, whose time limit ends it. */
#include "../weak.pml"
#define NO_FENCE_OF_OWNER 1   /* hbm_ring(): where ranks share CPUs */
#define NO_FENCE_OF_SLEEPER 2 /* hbm_begin_sleep() */
#define NO_ACQUIRE_OF_BELL 3  /* hbm_nap() */
#define NO_COMPARE_IN_KERNEL 4  /* hbm_nap() */

#define WORDS 2
short word, bell;
bit asleep, queued; /* queued: in the kernel */

#define O(k, op) (((k) - 1) * 4 + (op))
#define OLD(k, op) ((k) > 1 -> BIT(O((k) - 1, op)) : 0) /* the same address */
/* 0 word = k (release), fence, 1 asleep, 2 bell, which the fence orders too, 3 the kernel wakes */
#define STORE(k)                                                                            \
    OP(O(k, 0), BEFORE(O(k, 0)), true, word = k)                                            \
    OP(O(k, 1), OLD(k, 1) | NEEDS(NO_FENCE_OF_OWNER, BEFORE(O(k, 1))), true, rings[k] = asleep) \
    OP(O(k, 2), BIT(O(k, 1)) | OLD(k, 2), true, bell = bell + rings[k])                     \
    OP(O(k, 3), BIT(O(k, 1)) | BIT(O(k, 2)) | OLD(k, 3), true, queued = (rings[k] -> 0 : queued))

active proctype owner()
{
    int done = 0;
    bit rings[WORDS + 1];
    do
    STORE(1) STORE(2)
    :: done == BEFORE(4 * WORDS) -> break
    od
}

/* A sleep: 0 asleep = 1, fence; then naps: 1 bell (acquire), 2 the word. The byte stays 1 from nap to
   nap. The store of 0 after a sleep may take place at any moment before the next store in the same
   byte: `clears`. */
#define FENCED NEEDS(NO_FENCE_OF_SLEEPER, BIT(0))
active proctype sleeper()
{
    int done;
    short target = 1, found, heard;
    bit clears;
    do
    :: atomic { clears -> asleep = 0; clears = 0 }
    :: target > WORDS -> break
    :: target <= WORDS && word >= target -> target++
    :: target <= WORDS && word < target ->
        done = 0;
        do
        :: atomic { clears -> asleep = 0; clears = 0 }
        OP(0, 0, true, asleep = 1; clears = 0)
        OP(1, FENCED, true, heard = bell)
        OP(2, FENCED | NEEDS(NO_ACQUIRE_OF_BELL, BIT(1)), true, found = word)
        :: done == BEFORE(3) && found >= target -> break
        :: done == BEFORE(3) && found < target -> /* FUTEX_WAIT compares and queues under a lock */
            if
            :: atomic { bell == heard || LACKS(NO_COMPARE_IN_KERNEL) -> queued = 1 }; !queued
            :: bell != heard && !LACKS(NO_COMPARE_IN_KERNEL)
            fi;
            done = BIT(0)
        od;
        clears = 1
    od
}
