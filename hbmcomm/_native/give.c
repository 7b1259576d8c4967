/* Posts how a rank gives what it gives; with a table where only the giver knows the parts. */
#include "parts.h"

/* Bytes of all that others take from this rank; without a table, as they lie in its array. */
static uint64_t all_given(const hbm_operation *o)
{
    const hbm_part *parts = o->call.send_parts;
    uint64_t sum = 0, end = 0;
    if (!parts)
        return gives_to_each(o) ? (uint64_t)o->comm->size * o->block : o->block;
    for (int r = 0; r < o->comm->size; r++) {
        sum += r == o->comm->rank ? 0 : parts[r].bytes;
        end = parts[r].offset + parts[r].bytes > end ? parts[r].offset + parts[r].bytes : end;
    }
    return has_table(o) ? sum : end;
}

/* Puts the table, and after it the parts if they go through the slot; all bytes of both. */
static uint64_t put_table(hbm_operation *o, uint64_t data_bytes)
{
    uint64_t at = (uint64_t)o->comm->size * sizeof(hbm_part);
    uint64_t all = at + (o->offer == IN_SLOT ? data_bytes : 0);
    unsigned char *room = hbm_room(o, 0, 0, all);
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
    uint32_t more = SAME_PLACES | (o->receives_in_arena ? RECV_IN_ARENA : 0);
    uint64_t bytes = all_given(o);
    uint64_t table = has_table(o) ? (uint64_t)o->comm->size * sizeof(hbm_part) : 0;
    o->offer = hbm_offer(o, bytes + table);
    if (o->offer == IN_STAGING) {
        int status = hbm_has_staging(o);
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
