/* The record of a call, and a rank that looks for it while its owner may reuse its place.

   Code: comm/posts.c comm/failure.c

   The owner writes one place of its history for three calls. The reader looks for any of them: what
   it accepts is the record of that call. The history's words are relaxed atomics; fences order
   them. */
#include "../weak.pml"
#define NO_RELEASE_FENCE_OF_RECORD 1 /* record_call(): after sequence = 0 */
#define NO_RELEASE_OF_RECORD 2       /* record_call(): sequence = s */
#define NO_ACQUIRE_OF_RECALL 3       /* recall(): the first look */
#define NO_ACQUIRE_FENCE_OF_RECALL 4 /* recall(): before the second look */

short sequence, what, count;

#define W(s, op) (((s) - 1) * 4 + (op))
#define OLD(s, op) ((s) > 1 -> BIT(W((s) - 1, op)) : 0) /* the same address */
#define CLEARED(s) NEEDS(NO_RELEASE_FENCE_OF_RECORD, BIT(W(s, 0)))
/* 0 sequence = 0, fence, 1 what, 2 count, 3 sequence = s */
#define RECORD(s)                                                           \
    OP(W(s, 0), OLD(s, 3), true, sequence = 0)                              \
    OP(W(s, 1), OLD(s, 1) | CLEARED(s), true, what = s)                     \
    OP(W(s, 2), OLD(s, 2) | CLEARED(s), true, count = s)                    \
    OP(W(s, 3), BIT(W(s, 0)) | NEEDS(NO_RELEASE_OF_RECORD, BEFORE(W(s, 3))), true, sequence = s)

active proctype owner()
{
    int done = 0;
    do
    RECORD(1) RECORD(2) RECORD(3)
    :: done == BEFORE(12) -> break
    od
}

#define FIRST NEEDS(NO_ACQUIRE_OF_RECALL, BIT(0))
active proctype reader()
{
    int done = 0;
    short wanted, first, its_what, its_count, second;
    select(wanted : 1 .. 3);
    do
    OP(0, 0, true, first = sequence)
    OP(1, FIRST, true, its_what = what)
    OP(2, FIRST, true, its_count = count)
    OP(3, BIT(0) | NEEDS(NO_ACQUIRE_FENCE_OF_RECALL, BEFORE(3)), true, second = sequence)
    :: done == BEFORE(4) -> break
    od;
    assert(first != wanted || second != wanted || (its_what == wanted && its_count == wanted))
}
