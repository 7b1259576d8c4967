/* Flags of a remote region: one tensor at a time, and a producer that leaves after its last one.

   Code: comm/flags.c

   The producer raises `posted`, the consumer `released`. A tensor has two words. The consumer does not
   know how many come: it waits until the producer has left. It has then read all of them. */
#include "../weak.pml"
#define NO_RELEASE_OF_POSTED 1   /* hbm_raise_flags() */
#define NO_ACQUIRE_OF_POSTED 2   /* arrived() */
#define NO_RELEASE_OF_RELEASED 3 /* hbm_raise_flags() */
#define NO_ACQUIRE_OF_RELEASED 4 /* arrived() */
#define NO_WAIT_FOR_POSTED 5     /* hbm_await_flag() */
#define NO_WAIT_FOR_RELEASED 6   /* hbm_await_flag() */
#define NO_RELEASE_OF_FAILED 7   /* hbm_fail() */
#define NO_ACQUIRE_OF_FAILED 8   /* hbm_find_failure() */
#define NO_SECOND_LOOK 9         /* hbm_cannot_arrive() */

#define TENSORS 3
short tensor, more, posted, released;
bit failed;

#define P(n, op) ((n) * 4 + (op)) /* n counts from 0 here; tensor n has number n + 1 */
#define OLD_P(n, op) ((n) -> BIT(P((n) - 1, op)) : 0) /* the same address */
#define FREE(n) NEEDS(NO_ACQUIRE_OF_RELEASED, BIT(P(n, 0)))
/* 0 the tensor before is released, 1 and 2 the words, 3 posted */
#define PRODUCE(n)                                                                          \
    OP(P(n, 0), OLD_P(n, 0), released >= (n) || LACKS(NO_WAIT_FOR_RELEASED), skip)          \
    OP(P(n, 1), FREE(n) | OLD_P(n, 1), true, tensor = (n) + 1)                              \
    OP(P(n, 2), FREE(n) | OLD_P(n, 2), true, more = (n) + 1)                                \
    OP(P(n, 3), OLD_P(n, 3) | NEEDS(NO_RELEASE_OF_POSTED, BEFORE(P(n, 3))), true, posted = (n) + 1)
#define LEAVE P(TENSORS, 0)

active proctype producer()
{
    int done = 0;
    do
    PRODUCE(0) PRODUCE(1) PRODUCE(2)
    OP(LEAVE, NEEDS(NO_RELEASE_OF_FAILED, BEFORE(LEAVE)), true, failed = 1)
    :: done == BEFORE(LEAVE + 1) -> break
    od
}

#define C(n, op) ((n) * 4 + (op))
#define OLD_C(n, op) ((n) -> BIT(C((n) - 1, op)) : 0)
#define FOUND(n) NEEDS(NO_ACQUIRE_OF_POSTED, BIT(C(n, 0)))
/* 0 posted, 1 and 2 the words, 3 released */
#define CONSUME(n)                                                                          \
    OP(C(n, 0), OLD_C(n, 0), posted >= (n) + 1 || LACKS(NO_WAIT_FOR_POSTED), skip)          \
    OP(C(n, 1), FOUND(n) | OLD_C(n, 1), true, assert(tensor == (n) + 1))                    \
    OP(C(n, 2), FOUND(n) | OLD_C(n, 2), true, assert(more == (n) + 1))                      \
    OP(C(n, 3), BIT(C(n, 0)) | OLD_C(n, 3) | NEEDS(NO_RELEASE_OF_RELEASED, BEFORE(C(n, 3))), \
       true, released = (n) + 1)
#define GONE C(TENSORS, 0) /* `failed`; then `posted` again, for the number of tensors that came */

active proctype consumer()
{
    int done = 0;
    do
    CONSUME(0) CONSUME(1) CONSUME(2)
    OP(GONE, 0, failed, skip)
    OP(GONE + 1, (LACKS(NO_SECOND_LOOK) -> 0 : NEEDS(NO_ACQUIRE_OF_FAILED, BIT(GONE))), true,
       assert(posted == TENSORS))
    :: done == BEFORE(GONE + 2) -> break
    od
}
