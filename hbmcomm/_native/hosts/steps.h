/* Algorithms between hosts, as steps of each host: nothing here sends or waits.

   The entries of an array are numbered from 0. Ranges may be empty: then no message is sent. */
#ifndef HBMCOMM_STEPS_H
#define HBMCOMM_STEPS_H

#include "api.h"

/* Part `part` of `parts` consecutive ones, which differ in length by one entry at most. */
static inline hbm_range hbm_part_of(hbm_range all, uint64_t parts, uint64_t part)
{
    /* n * part may overflow */
    uint64_t n = all.end - all.begin, share = n / parts, rest = n % parts;
    return (hbm_range){all.begin + share * part + rest * part / parts,
                       all.begin + share * (part + 1) + rest * (part + 1) / parts};
}

/* How a message goes in slices: hosts exchange parts of each slice, or each goes whole from host to
   host; ONE: the call does not go in slices. */
enum { SPLIT, WHOLE, ONE };

/* Whether no step receives anything. */
int hbm_only_sends(const hbm_schedule *s);

#endif
