/* A rank that writes into private memory of another one, which fails and uses that memory again, in
   C11.

   Code: comm/private.c comm/failure.c

   The word `writing` is set and cleared: two locations, of which `cleared` is the later value. `other`
   returns to its program, which uses the memory, only when nothing is written there any more: what was
   written came before, and nothing comes later. */
#include "../views.pml"
#define NO_FENCE_OF_WRITER 1     /* begin_writing() */
#define NO_FENCE_OF_OTHER 2      /* await_writers() */
#define NO_RELEASE_OF_CLEARED 3  /* end_writing() */
#define NO_ACQUIRE_OF_CLEARED 4  /* await_writers() */

#define WRITING 0
#define CLEARED 1
#define FAILED 2
#define MEMORY 3
bit used_again;

active proctype writer()
{
    THREAD;
    bit fails;
    STORE(WRITING);
    FENCE_SEQ_CST(NO_FENCE_OF_WRITER);
    LOAD(FAILED, fails);
    if
    :: !fails ->
        assert(!used_again);
        STORE(MEMORY)
    :: else
    fi;
    FENCE_RELEASE(NO_RELEASE_OF_CLEARED);
    STORE(CLEARED)
}

active proctype other()
{
    THREAD;
    bit cleared, writing;
    STORE(FAILED);
    FENCE_SEQ_CST(NO_FENCE_OF_OTHER);
    do
    :: LOAD(CLEARED, cleared);
        if
        :: cleared ->
            FENCE_ACQUIRE(NO_ACQUIRE_OF_CLEARED);
            break
        :: else
        fi;
        LOAD(WRITING, writing);
        if
        :: !writing -> break
        :: else -> writing = 0
        fi
    od;
    atomic {
        used_again = 1;
        assert(!(stored & IS(MEMORY)) || view & IS(MEMORY))
    }
}
