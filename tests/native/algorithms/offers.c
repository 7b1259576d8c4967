/* Offers: before a rank offers private memory, it finds out whether others can read it. */
#include "core_test.h"

#include <sys/mman.h>

#define PART (256 * 1024) /* longer than what is read in place at least */

/* A buffer that ends where its mapping ends: what is behind it must not be looked at. A rank sends
   nothing to itself. */
static void body_offers(member *me)
{
    int n = me->g.size;
    uint64_t bytes = (uint64_t)(n - 1) * PART;
    char *send = mmap(NULL, bytes + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(send != MAP_FAILED && !mprotect(send + bytes, PAGE, PROT_NONE), "no memory");
    char *recv = calloc((size_t)n, PART);
    CHECK(recv, "no memory");
    hbm_part send_parts[MOST_RANKS], recv_parts[MOST_RANKS];
    for (int r = 0; r < n; r++) {
        uint64_t length = r == me->rank ? 0 : PART;
        send_parts[r] = (hbm_part){(uint64_t)(r - (r > me->rank)) * PART, length};
        recv_parts[r] = (hbm_part){(uint64_t)r * PART, length};
        memset(send + send_parts[r].offset, 1 + n * me->rank + r, length);
    }
    hbm_call call = {.operation = HBM_ALLTOALLV, .dtype = HBM_UINT8, .send = (uintptr_t)send,
                     .recv = (uintptr_t)recv, .send_parts = send_parts, .recv_parts = recv_parts};
    CHECK(hbm_run(me->comm, &call) == HBM_OK, "the call failed");
    for (int r = 0; r < n; r++)
        CHECK(r == me->rank || (recv[(uint64_t)r * PART] == 1 + n * r + me->rank
                                && recv[(uint64_t)(r + 1) * PART - 1] == 1 + n * r + me->rank),
              "the block of rank %d is wrong", r);
    CHECK(hbm_staging(me->comm) == HBM_NOWHERE, "readable memory was taken for unreadable");
    free(recv);
    munmap(send, bytes + PAGE);
}

void test_offers(UNUSED uint64_t seed, UNUSED double seconds)
{
    as_ranks((group){.size = 3, .reads_private = 1}, body_offers, NULL);
}
