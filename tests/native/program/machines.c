/* Machines with many cores, by the places of their ranks: one rank for each core, in order. */
#include "core_test.h"

/* Knights Landing in SNC-4: four nodes of 16 cores; two cores share a last-level cache. */
static spot knl(int rank)
{
    return (spot){0, rank / 16, rank / 2 * 2};
}

/* Two Xeon Max in SNC-4: two packages of four nodes of 14 cores. */
static spot xeon_max(int rank)
{
    return (spot){rank / 56, rank / 14, rank / 14 * 14};
}

/* Grace Hopper: 72 cores, one node, one cache. */
static spot gh200(UNUSED int rank)
{
    return (spot){0, 0, 0};
}

/* An EPYC of 16 chiplets: one node, 16 caches of eight cores. */
static spot epyc(int rank)
{
    return (spot){0, 0, rank / 8 * 8};
}

const described machines[] = {{"KNL SNC-4", 64, knl},
                              {"two Xeon Max SNC-4", 112, xeon_max},
                              {"GH200", 72, gh200},
                              {"EPYC, 16 L3", 128, epyc}};
const int machine_count = sizeof machines / sizeof *machines;
