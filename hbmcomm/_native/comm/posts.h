/* Posts: what a rank contributes to a call, as other ranks read it. */
#ifndef HBMCOMM_POSTS_H
#define HBMCOMM_POSTS_H

#include "comm/comm.h"

/* The readers of a post: none (any more), mates of the exchange, parent and children in the
   root's tree, ranks of one row or column of a grid, the root, or any rank. */
enum { READ_BY_NOBODY, READ_BY_GROUPS, READ_BY_TREE, READ_BY_GRID, READ_BY_ROOT, READ_BY_ALL };

/* Gives a call its number and records it: others compare it. Waits for nobody. */
void hbm_number_call(hbm_operation *o);

/* Begins a call with posts: numbers it, and waits for a slot that nobody reads any more. `readers`
   are those of the posts that this rank makes in it. */
int hbm_begin_call(hbm_operation *o, int readers);

/* Changes which ranks read, or may still read, this rank's posts of the call. */
void hbm_read_by(hbm_operation *o, int readers);

/* Posts this rank's part; `data`, or NULL, is copied into the slot. */
void hbm_post(hbm_operation *o, const void *data, uint64_t bytes, uint32_t flags);

/* Posts the part of a group that this rank leads; its data, if any, is in hbm_slot_room()
   already. */
void hbm_record(hbm_operation *o, int record, uint32_t flags);

/* Room for data of this rank that goes with a post. */
unsigned char *hbm_slot_room(hbm_operation *o, int record, uint64_t offset, uint64_t bytes);

/* The data of another rank's post. */
const unsigned char *hbm_post_data(const hbm_operation *o, int rank, const post *p, uint64_t offset,
                              uint64_t bytes);

/* Finds the post of another rank for this call. HBM_PENDING: it is not there yet. */
int hbm_find_post(hbm_operation *o, int rank, int record, const post **posted);

/* Whether a rank has completed a call; if not, it is what this rank waits for. */
int hbm_has_completed(hbm_operation *o, int rank, uint64_t sequence);

#endif
