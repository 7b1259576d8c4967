/* The algorithms, each in a file of its own. */
#ifndef HBMCOMM_ALGORITHMS_H
#define HBMCOMM_ALGORITHMS_H

#include "comm/comm.h"

/* barrier.c */
int hbm_barrier_path(hbm_operation *o);
int hbm_note_path(hbm_operation *o);
/* single_rank.c */
int hbm_single_rank(hbm_operation *o);
/* eager.c: data in the posts, along the groups; hbm_eager_room: bytes of a slot that it needs */
int hbm_bcast_eager(hbm_operation *o);
int hbm_reduce_eager(hbm_operation *o);
int hbm_allreduce_eager(hbm_operation *o);
uint64_t hbm_eager_room(const hbm_comm *c, uint64_t bytes);
/* grid.c; hbm_grid_room: bytes of a slot that it needs */
int hbm_allgather_grid(hbm_operation *o);
uint64_t hbm_grid_room(const hbm_comm *c, uint64_t block);
/* exchange.c: gather, scatter, allgather, alltoall; hbm_exchange_offered: after the offers */
int hbm_exchange(hbm_operation *o);
int hbm_exchange_offered(hbm_operation *o);
int hbm_allgather_agreed(hbm_operation *o);
/* broadcast.c */
int hbm_broadcast(hbm_operation *o);
/* reduce.c, and what ranks may agree on there */
int hbm_reduce_agreed(hbm_operation *o);
int hbm_reduce_flat(hbm_operation *o);
int hbm_reduce_pair(hbm_operation *o);
int hbm_pair_has_room(const hbm_operation *o); /* whether it can do this call */
int hbm_reduce_staged(hbm_operation *o);
/* by_nodes.c */
int hbm_reduce_by_nodes(hbm_operation *o);
int hbm_nodes_have_room(const hbm_operation *o); /* whether it can do this call */
int hbm_allgather_by_nodes(hbm_operation *o);
/* reduce_scatter.c */
int hbm_reduce_scatter(hbm_operation *o);
/* scan.c */
int hbm_scan_eager(hbm_operation *o);
int hbm_scan(hbm_operation *o);

#endif
