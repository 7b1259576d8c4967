/* Who has left a communicator: a byte for each rank, behind the control block of each rank.

   A rank that leaves stores into its byte of every block, its own included, with release: what it
   wrote into that block before is there when the owner, who loads with acquire, sees the byte. A
   rank whose claim is not taken any more has left too, by its death; its stores are over. */
#include <stdatomic.h>
#include <stdint.h>

#include "interface.h"

typedef _Atomic unsigned char mark;

void hbm_leave(uintptr_t marks, int rank)
{
    atomic_store_explicit((mark *)marks + rank, 1, memory_order_release);
}

int hbm_all_gone(uintptr_t marks, int ranks, const uintptr_t *claims, uint32_t boot)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!atomic_load_explicit((mark *)marks + rank, memory_order_acquire)
            && hbm_is_taken(claims[rank], boot))
            return 0;
    return 1;
}
