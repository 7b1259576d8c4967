/* Copies data that was received without gaps into entries with gaps. It touches arrays of this rank
   alone, after the call that received them, so it needs no ordering. */
#include "cpu/unpack.h"

#include <string.h>

static void unpack(const hbm_unpacking *u)
{
    const char *from = (const char *)u->from;
    for (uint64_t e = 0; e < u->entries; e++)
        for (uint64_t r = 0; r < u->run_count; r++) {
            memcpy((char *)u->to + e * u->extent + u->runs[r].offset, from, u->runs[r].bytes);
            from += u->runs[r].bytes;
        }
}

void hbm_unpack(const hbm_call *call)
{
    for (uint64_t i = 0; i < call->after_count; i++)
        unpack(&call->after[i]);
}
