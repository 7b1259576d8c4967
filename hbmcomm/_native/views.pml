/* C11's memory, for models of what Arm and x86 order but C11 does not without a fence.

   A thread does its operations in program order, but a load may return an old value: each location
   is 0 and becomes 1 once. `view` is the set of locations whose 1 the thread must see. A store
   carries a view, which a load takes over: at once if it is an acquire, at the next acquire fence if
   not. Left out: loads that take place after later stores (weak.pml has them). */
byte stored, sequential, carried[8];
#define IS(location) (1 << (location))
#define THREAD byte view, taken, released
#define STORE(location)                                                             \
    atomic {                                                                        \
        carried[location] = released | IS(location);                                \
        view = view | IS(location);                                                 \
        stored = stored | IS(location)                                              \
    }
#define LOAD(location, value)                                                       \
    if                                                                              \
    :: atomic {                                                                     \
        stored & IS(location) -> value = 1;                                         \
        view = view | IS(location);                                                 \
        taken = taken | carried[location]                                           \
    }                                                                               \
    :: atomic { !(view & IS(location)) -> value = 0 }                               \
    fi
#define FENCE_RELEASE(twin) released = (TWIN == twin -> released : view)
#define FENCE_ACQUIRE(twin) view = (TWIN == twin -> view : view | taken)
#define FENCE_SEQ_CST(twin)                                                         \
    atomic {                                                                        \
        if                                                                          \
        :: TWIN == twin                                                             \
        :: TWIN != twin ->                                                          \
            view = view | taken | sequential;                                       \
            sequential = view;                                                      \
            released = view                                                         \
        fi                                                                          \
    }

#ifndef TWIN
#define TWIN 0
#endif
