/* Records which ranks have left a communicator: one byte for each rank, behind each rank's control
   block.

   Ordering: a leaving rank stores into its byte of every block, its own included, with release. The
   owner of a block loads the bytes with acquire, and so sees all earlier stores of those ranks into
   the block before it reuses it. A dead rank has no claim any more and makes no more stores, so it
   counts as one that has left.

   Model: comm/departures.pml */
#include <stdatomic.h>
#include <stdint.h>

#include "api.h"

typedef _Atomic unsigned char mark;

void hbm_mark_left(uintptr_t marks, int rank)
{
    atomic_store_explicit((mark *)marks + rank, 1, memory_order_release);
}

int hbm_all_left(uintptr_t marks, int ranks, const uintptr_t *claims, uint32_t boot)
{
    for (int rank = 0; rank < ranks; rank++)
        if (!atomic_load_explicit((mark *)marks + rank, memory_order_acquire)
            && hbm_is_claimed(claims[rank], boot))
            return 0;
    return 1;
}
