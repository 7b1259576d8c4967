/* Long blocks in pieces, through the staging buffers of their senders. */
#ifndef HBMCOMM_PIECES_H
#define HBMCOMM_PIECES_H

#include "comm/comm.h"
#include "kernels/dtype.h"
#include "kernels/shapes.h"

/* Bytes of a rank's staging buffers that pieces use in turn: they stay in its cache. */
#define RING (1024 * KIB)

/* The length of a piece where some ranks copy into staging buffers while others copy out: a message
   has several pieces, so that both work at once. */
static inline uint64_t overlapping_piece(uint64_t block)
{
    const uint64_t least = 4 * KIB, most = 32 * KIB;
    uint64_t quarter = block / 4 / least * least;
    return quarter < least ? least : quarter < most ? quarter : most;
}

/* The length of the pieces of a message: `room` bytes or a little less, but more where there would be
   more than MOST_PIECES. No entry that is reduced crosses two pieces; ranks that only move data may
   differ in dtype. For calls that operation.c lets begin the result is `room` at most, or less than
   hbm_most_room(). */
static inline uint64_t room_for(const hbm_operation *o, uint64_t message, uint64_t room)
{
    uint64_t entry = shape_of(o->call.operation)->reduces ? entry_bytes(&o->call) : 1;
    uint64_t least = message / MOST_PIECES + 1;
    uint64_t grain = room < LINE * entry ? entry : LINE * entry, down = room / grain * grain;
    return down >= least ? down : (least + entry - 1) / entry * entry;
}

/* The longest piece for which staging buffers have room. */
uint64_t hbm_most_room(const hbm_operation *o);

/* The length of this rank's pieces, if it offers its message in staging buffers; it posts that. */
uint64_t hbm_piece_room(const hbm_operation *o);

/* Bytes of its staging buffers that pieces of this length use in turn. */
uint64_t hbm_ring_bytes(const hbm_operation *o);

/* Sets the number of pieces, once the offers of all senders are known. */
int hbm_begin_pieces(hbm_operation *o);

/* Whether all ranks have finished with this rank's staging buffers in the call before. */
int hbm_staging_is_free(hbm_operation *o);

/* Puts this rank's part of a piece into its staging buffers, for all receivers. */
int hbm_produce(hbm_operation *o);

/* A piece that a sender has staged for this rank: bytes from `offset` on of its message. 0 bytes:
   it has no more, or stages nothing. */
typedef struct {
    const void *from;
    uint64_t offset, bytes;
} staged_piece;

int hbm_find_piece(hbm_operation *o, int sender, staged_piece *piece);

/* Signals that this rank has taken the current piece of all senders. */
void hbm_signal_consumed(hbm_operation *o);

#endif
