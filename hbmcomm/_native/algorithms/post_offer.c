/* Posts a rank's offer, with a table of the parts where only the sender knows them.

   Ordering: hbm_post() publishes the table and the data, which are written before. */
#include "algorithms/post_offer.h"

#include "comm/failure.h"
#include "algorithms/blocks.h"
#include "algorithms/pieces.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

/* Bytes that others take from this rank; without a table, gaps between them included. */
static uint64_t all_sent(const hbm_operation *o)
{
    const hbm_part *parts = o->call.send_parts;
    uint64_t sum = 0, end = 0;
    if (!parts)
        return sends_to_each(&o->call) ? (uint64_t)o->comm->size * o->block : o->block;
    for (int r = 0; r < o->comm->size; r++) {
        sum += r == o->comm->rank ? 0 : parts[r].bytes;
        if (parts[r].bytes && parts[r].offset + parts[r].bytes > end)
            end = parts[r].offset + parts[r].bytes;
    }
    return has_table(o) ? sum : end;
}

/* Writes the table, and after it the parts if they go through the slot; returns the bytes of
   both. */
static uint64_t put_table(hbm_operation *o, uint64_t data_bytes)
{
    uint64_t at = (uint64_t)o->comm->size * sizeof(hbm_part);
    uint64_t all = at + (o->offer == IN_SLOT ? data_bytes : 0);
    unsigned char *room = hbm_slot_room(o, 0, 0, all);
    for (int r = 0; r < o->comm->size; r++) {
        hbm_part part = o->call.send_parts[r];
        if (o->offer == IN_SLOT && r != o->comm->rank) {
            if (part.bytes)
                memcpy(room + at, (const char *)o->call.send + part.offset, part.bytes);
            part.offset = at;
            at += part.bytes;
        }
        memcpy(room + (size_t)r * sizeof part, &part, sizeof part);
    }
    return all;
}

int hbm_post_offer(hbm_operation *o)
{
    uint32_t more = SAME_OFFSETS | (is_from_root(o) ? REACHABLE : hbm_reception(o));
    uint64_t bytes = all_sent(o);
    uint64_t table = has_table(o) ? (uint64_t)o->comm->size * sizeof(hbm_part) : 0;
    o->offer = hbm_choose_offer(o, bytes + table);
    if (o->offer == IN_STAGING) {
        o->room = hbm_piece_room(o);
        if (o->room > hbm_most_room(o)) /* blocks of unequal lengths, of which others do not know */
            return hbm_blame(o->comm, HBM_NO_MEMORY, o->comm->rank);
        int status = hbm_allocate_staging(o, hbm_ring_bytes(o));
        if (status)
            return status;
    }
    if (has_table(o))
        hbm_post(o, NULL, put_table(o, bytes), o->offer | more);
    else
        hbm_post(o, o->offer == IN_SLOT ? (const void *)o->call.send : NULL, bytes,
                 o->offer | more);
    o->flags = o->offer | more;
    return HBM_OK;
}
