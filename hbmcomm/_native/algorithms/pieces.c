/* Long blocks through staging buffers, in lockstep: a sender refills a buffer once all receivers
   have taken the piece in it; a receiver takes piece k from all senders before piece k + 1.

   Ordering: a sender's `ready` counts the pieces that it has put, and is stored with release after
   them; a receiver's `done` counts those that it has taken from every sender, and is stored with
   release after its reads. Each loads the other's word with acquire.

   Each call continues with the buffer after the last one that the call before used, and posts
   which one that is: a write to lines that others have just read takes twice as long as to other
   lines.

   Models: algorithms/pieces.pml, algorithms/staging.pml */
#include "algorithms/pieces.h"

#include "comm/bell.h"
#include "comm/failure.h"
#include "algorithms/blocks.h"
#include "comm/posts.h"
#include "algorithms/rendezvous.h"

#define PIECE (64 * KIB)

static uint64_t slices_of(const hbm_operation *o)
{
    return sends_to_each(&o->call) ? (uint64_t)o->comm->size : 1;
}

static uint64_t count(uint64_t bytes, uint64_t room) { return (bytes + room - 1) / room; }

/* Bytes of the current piece of a message. */
static uint64_t bytes_of(const hbm_operation *o, uint64_t message, uint64_t room)
{
    uint64_t at = o->piece * room;
    return message <= at ? 0 : message - at < room ? message - at : room;
}

/* The number of pieces that a sender may be ahead of its receivers. */
static uint64_t depth(const hbm_operation *o, uint64_t room)
{
    uint64_t buffers = RING / (room * slices_of(o));
    return buffers > STAGING_DEPTH ? buffers : STAGING_DEPTH;
}

uint64_t hbm_ring_bytes(const hbm_operation *o)
{
    return depth(o, o->room) * slices_of(o) * o->room;
}

/* The offset of a receiver's piece in a sender's staging; `first` is the buffer that it began
   with. */
static uint64_t offset_of(const hbm_operation *o, uint64_t first, int receiver, uint64_t room)
{
    uint64_t slice = sends_to_each(&o->call) ? (uint64_t)receiver : 0;
    return ((first + o->piece) % depth(o, room) * slices_of(o) + slice) * room;
}

static uint64_t piece_of(const hbm_operation *o)
{
    int operation = o->call.operation, overlaps = operation == HBM_BCAST || operation == HBM_GATHER;
    return overlaps && !o->comm->oversubscribed ? overlapping_piece(o->block) : PIECE;
}

uint64_t hbm_most_room(const hbm_operation *o)
{
    return STAGING_BYTES / STAGING_DEPTH / slices_of(o);
}

uint64_t hbm_piece_room(const hbm_operation *o)
{
    uint64_t longest = 0, most = piece_of(o), share = hbm_most_room(o);
    for (int r = 0; r < o->comm->size; r++) {
        uint64_t bytes = part_for(o, r).bytes;
        longest = bytes > longest ? bytes : longest;
    }
    return room_for(o, longest, share < most ? share : most);
}

/* The length of a sender's pieces, as it posted it; 0: it does not stage its message. */
static int find_room(hbm_operation *o, int sender, const post **p, uint64_t *room)
{
    int status = hbm_find_post(o, sender, 0, p);
    *room = 0;
    if (status)
        return status;
    const volatile post *posted = *p;
    if (!(posted->flags & IN_STAGING))
        return HBM_OK;
    *room = posted->room;
    return *room && *room <= hbm_most_room(o) ? HBM_OK
                                              : hbm_blame(o->comm, HBM_UNTRUSTED, sender);
}

int hbm_begin_pieces(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    o->piece = o->pieces = 0;
    for (int r = 0; r < c->size; r++) {
        uint64_t given = 0, taken = 0, room;
        const post *p;
        if (r == c->rank)
            continue;
        if (o->offer == IN_STAGING && is_receiver(o, r))
            given = count(part_for(o, r).bytes, o->room);
        if (o->seen & IN_STAGING && is_receiver(o, c->rank) && is_sender(o, r)) {
            int status = find_room(o, r, &p, &room);
            if (status)
                return status;
            taken = room ? count(part_from(o, r).bytes, room) : 0;
        }
        o->pieces = given > o->pieces ? given : o->pieces;
        o->pieces = taken > o->pieces ? taken : o->pieces;
    }
    if (o->pieces >= LAST_STEP)
        return hbm_blame(o->comm, HBM_UNTRUSTED, c->rank);
    if (o->offer == IN_STAGING)
        o->comm->staged += o->pieces;
    return HBM_OK;
}

int hbm_staging_is_free(hbm_operation *o)
{
    for (int r = 0; r < o->comm->size; r++)
        if (!hbm_has_completed(o, r, o->sequence - 1))
            return 0;
    return 1;
}

int hbm_produce(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (o->offer != IN_STAGING)
        return HBM_OK;
    if (!o->piece && !hbm_staging_is_free(o))
        return HBM_PENDING;
    uint64_t ahead = depth(o, o->room);
    for (; o->piece >= ahead && o->peer < c->size; o->peer++)
        if (o->peer != c->rank && is_receiver(o, o->peer)
            && !reached(o, o->peer, &c->peers[o->peer].control->done,
                        at_step(o, o->piece - ahead + 1)))
            return HBM_PENDING;
    for (int s = 0; s < (int)slices_of(o); s++) {
        hbm_part part = part_for(o, s);
        uint64_t bytes = sends_to_each(&o->call) && s == c->rank ? 0 : bytes_of(o, part.bytes, o->room);
        if (bytes)
            hbm_copy(c->peers[c->rank].ordinary + c->staging + offset_of(o, o->send_at, s, o->room),
                     (const char *)o->call.send + part.offset + o->piece * o->room, bytes);
    }
    signal_step(o, &c->own->ready, o->piece + 1);
    hbm_ring(c);
    return HBM_OK;
}

int hbm_find_piece(hbm_operation *o, int sender, staged_piece *piece)
{
    hbm_comm *c = o->comm;
    const post *p;
    uint64_t room;
    *piece = (staged_piece){.bytes = 0};
    int status = find_room(o, sender, &p, &room);
    if (status || !room)
        return status;
    const volatile post *posted = p;
    piece->offset = o->piece * room;
    piece->bytes = bytes_of(o, part_from(o, sender).bytes, room);
    if (!piece->bytes)
        return HBM_OK;
    if (!reached(o, sender, &c->peers[sender].control->ready, at_step(o, o->piece + 1)))
        return HBM_PENDING;
    piece->from = hbm_staged(o, sender, offset_of(o, posted->send, c->rank, room), piece->bytes);
    return piece->from ? HBM_OK : c->failure.status;
}

void hbm_signal_consumed(hbm_operation *o)
{
    if (o->streaming)
        hbm_stream_end();
    signal_step(o, &o->comm->own->done, o->piece + 1);
    hbm_ring(o->comm);
}
