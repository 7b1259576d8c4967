/* Long blocks in pieces, through the staging buffers of their senders. */
#ifndef HBMCOMM_PIECES_H
#define HBMCOMM_PIECES_H

#include "communicator/comm.h"

/* Bytes of a rank's staging buffers that pieces use in turn: they stay in its cache. */
#define RING (1024 * 1024)

/* The length of a piece where some ranks copy into staging buffers while others copy out: a message
   has several pieces, so that both work at once. */
static inline uint64_t overlapping_piece(uint64_t block)
{
    const uint64_t least = 4 * 1024, most = 32 * 1024;
    uint64_t quarter = block / 4 / least * least;
    return quarter < least ? least : quarter < most ? quarter : most;
}

/* Sets the number and length of the pieces, once the offers of all senders are known. */
void hbm_begin_pieces(hbm_operation *o);

/* Whether all ranks have finished with this rank's staging buffers in the call before. */
int hbm_staging_is_free(hbm_operation *o);

/* Puts this rank's part of a piece into its staging buffers, for all receivers. */
int hbm_produce(hbm_operation *o);

/* Finds a piece that a sender has staged for this rank. 0 bytes: it has no more, or stages
   nothing. */
int hbm_find_piece(hbm_operation *o, int sender, const void **from, uint64_t *bytes);

/* Signals that this rank has taken the current piece of all senders. */
void hbm_signal_consumed(hbm_operation *o);

#endif
