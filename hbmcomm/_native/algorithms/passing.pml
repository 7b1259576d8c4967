/* A rank that passes on data of a rank that fails, in C11.

   Code: comm/comm.h algorithms/broadcast.c algorithms/by_nodes.c

   `giver` fails, and its program changes the array. `second` copies it and passes it on; `third`
   takes the copy. Where `third` has the changed data, it sees that the giver failed. A release store
   is a release fence and a store, an acquire load is a load and an acquire fence. */
#include "../views.pml"
#define NO_FENCE_OF_FAIL 1      /* hbm_fail() */
#define NO_FENCE_OF_PASSING 2   /* signal_step() */
#define NO_RELEASE_OF_READY 3   /* signal_step() */
#define NO_ACQUIRE_OF_READY 4   /* reached() */

#define FAILED 0
#define ARRAY 1
#define READY 2
bit copy;

active proctype giver()
{
    THREAD;
    STORE(FAILED);
    FENCE_RELEASE(NO_FENCE_OF_FAIL);
    STORE(ARRAY)
}

active proctype second()
{
    THREAD;
    bit loaded;
    LOAD(ARRAY, loaded);
    copy = loaded;
    FENCE_ACQUIRE(NO_FENCE_OF_PASSING);
    FENCE_RELEASE(NO_RELEASE_OF_READY);
    STORE(READY)
}

active proctype third()
{
    THREAD;
    bit ready, loaded, fails;
    LOAD(READY, ready);
    FENCE_ACQUIRE(NO_ACQUIRE_OF_READY);
    if
    :: ready ->
        loaded = copy;
        LOAD(FAILED, fails);
        assert(fails || !loaded)
    :: else
    fi
}
