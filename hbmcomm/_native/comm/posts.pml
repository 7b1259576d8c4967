/* Posts, and the reuse of their slots.

   Code: comm/posts.c comm/progress.c

   One rank posts in each of CALLS calls and one rank reads, as in a short broadcast. A post has two
   words of data. The slot of call s is used again in call s + SLOTS. */
#include "../weak.pml"
#define NO_RELEASE_OF_POST 1  /* publish() */
#define NO_ACQUIRE_OF_POST 2  /* hbm_find_post() */
#define NO_RELEASE_OF_CALLS 3 /* hbm_progress() */
#define NO_ACQUIRE_OF_CALLS 4 /* hbm_has_completed() */
#define NO_WAIT_FOR_READERS 5 /* hbm_begin_call() */

#define SLOTS 2
#define CALLS 4
short sequence[SLOTS], data[SLOTS], more[SLOTS], calls;

#define W(s, op) ((s) * 5 + (op)) /* s counts from 0 here; call s has number s + 1 */
#define OLD(s, op) ((s) >= SLOTS -> BIT(W((s) - SLOTS, op)) : 0) /* the same address */
#define KNOWN(s) NEEDS(NO_ACQUIRE_OF_CALLS, BIT(W(s, 0)))
/* 0 the reader has completed call s - SLOTS, 1 sequence = 0, 2 and 3 the data, 4 sequence */
#define POST(s)                                                                              \
    OP(W(s, 0), ((s) -> BIT(W((s) - 1, 0)) : 0),                                             \
       LACKS(NO_WAIT_FOR_READERS) || (s) < SLOTS || calls >= (s) - SLOTS + 1, skip)          \
    OP(W(s, 1), KNOWN(s) | OLD(s, 4), true, sequence[(s) % SLOTS] = 0)                       \
    OP(W(s, 2), KNOWN(s) | OLD(s, 2), true, data[(s) % SLOTS] = (s) + 1)                     \
    OP(W(s, 3), KNOWN(s) | OLD(s, 3), true, more[(s) % SLOTS] = (s) + 1)                     \
    OP(W(s, 4), BIT(W(s, 1)) | NEEDS(NO_RELEASE_OF_POST, BEFORE(W(s, 4))), true,             \
       sequence[(s) % SLOTS] = (s) + 1)

active proctype writer()
{
    int done = 0;
    do
    POST(0) POST(1) POST(2) POST(3)
    :: done == BEFORE(W(CALLS, 0)) -> break
    od
}

#define R(s, op) ((s) * 4 + (op))
#define BY(s, op) ((s) -> BIT(R((s) - 1, op)) : 0) /* of the call before */
#define POSTED(s) (BY(s, 0) | NEEDS(NO_ACQUIRE_OF_POST, BIT(R(s, 0))))
/* 0 sequence, 1 and 2 the data, 3 calls */
#define READ(s)                                                                              \
    OP(R(s, 0), BY(s, 0), sequence[(s) % SLOTS] >= (s) + 1,                                  \
       assert(sequence[(s) % SLOTS] == (s) + 1))                                             \
    OP(R(s, 1), POSTED(s), true, assert(data[(s) % SLOTS] == (s) + 1))                       \
    OP(R(s, 2), POSTED(s), true, assert(more[(s) % SLOTS] == (s) + 1))                       \
    OP(R(s, 3), BIT(R(s, 0)) | BY(s, 3) | NEEDS(NO_RELEASE_OF_CALLS, BEFORE(R(s, 3))), true, \
       calls = (s) + 1)

active proctype reader()
{
    int done = 0;
    do
    READ(0) READ(1) READ(2) READ(3)
    :: done == BEFORE(R(CALLS, 0)) -> break
    od
}
