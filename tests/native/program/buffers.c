/* See buffers.h. */
#include "buffers.h"

buffer new_buffer(unsigned char *place, int shared, uint64_t bytes, uint64_t skew)
{
    buffer b = {.bytes = bytes};
    if (shared) {
        b.at = place + GUARD + skew;
        memset(place, 0xA5, 2 * GUARD + skew + bytes);
    } else {
        b.own = malloc(skew + bytes + !(skew + bytes));
        CHECK(b.own, "no memory");
        b.at = (unsigned char *)b.own + skew;
    }
    memset(b.at, 0x5A, bytes);
    return b;
}

void end_buffer(buffer b)
{
    for (int i = 1; !b.own && b.at && i <= GUARD; i++)
        CHECK(b.at[-i] == 0xA5 && b.at[b.bytes + (uint64_t)i - 1] == 0xA5,
              "written beyond an array in the arena");
    if (b.at)
        memset(b.at, 0xEE, b.bytes);
    free(b.own);
}
