/* Which ranks have left a communicator: one byte for each rank, behind each rank's control block.

   A leaving rank stores into its byte of every block, its own included, with release order. The
   owner of the block loads the byte with acquire order, and so sees all earlier stores of that rank
   into the block before it reuses the block. A rank that is dead has no claim any more and makes no
   more stores: it has left too. */
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
