/* A weakly ordered machine, for models of the protocols.

   A thread is a list of numbered operations, each of which takes place once; `done` has the bit of
   each that has. OP(n, after, when, effect): operation n takes place at any moment at which `when`
   holds, once all operations of the set `after` have taken place. The set names what orders them: a
   release (all earlier operations), an acquire (the load), a fence, the same address, or an address
   that a load gave. Everything else changes places freely, loads with later stores included.

   A store reaches all threads at once, as on Arm v8 and x86; views.pml models C11, where it may
   not. A release may change places with a later acquire: that is weaker than Arm, except for LDAPR.
   No thread loads what it has stored itself, so that it may do so early makes no difference.

   A model depends on the orders that it marks NEEDS(TWIN, set). With -DTWIN=THAT_NAME the set is
   empty: the code without that fence, release or acquire. LACKS(TWIN) is for other broken code. The
   checker must find that the model holds and that every such twin breaks it. */
#define BIT(n) (1 << (n))
#define BEFORE(n) (BIT(n) - 1)
#define OP(n, after, when, effect)                                                  \
    :: atomic {                                                                     \
        !(done & BIT(n)) && (done & (after)) == (after) && (when) -> effect;        \
        done = done | BIT(n)                                                        \
    }

#ifndef TWIN
#define TWIN 0
#endif
#define LACKS(twin) (TWIN == twin)
#define NEEDS(twin, set) (LACKS(twin) -> 0 : (set))
