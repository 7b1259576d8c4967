/* The algorithms, each in a file of its own; and who chooses among them. */
#ifndef HBMCOMM_PATHS_H
#define HBMCOMM_PATHS_H

#include "comm.h"

/* sync.c */
int hbm_barrier_path(hbm_operation *o);
/* alone.c: a communicator of one rank */
int hbm_alone(hbm_operation *o);
/* eager.c: with the posts, along the groups */
int hbm_bcast_eager(hbm_operation *o);
int hbm_reduce_eager(hbm_operation *o);
int hbm_allreduce_eager(hbm_operation *o);
uint64_t hbm_eager_room(const hbm_comm *c, uint64_t bytes);
/* grid.c */
int hbm_allgather_grid(hbm_operation *o);
uint64_t hbm_grid_room(const hbm_comm *c, uint64_t block);
/* exchange.c: gather, scatter, allgather, alltoall */
int hbm_exchange(hbm_operation *o);
int hbm_allgather_met(hbm_operation *o);
/* broadcast.c */
int hbm_broadcast(hbm_operation *o);
/* reduce.c, reduce_pair.c, reduce_staged.c, by_nodes.c */
int hbm_reduction(hbm_operation *o);
int hbm_reduce_flat(hbm_operation *o);
int hbm_reduce_pair(hbm_operation *o);
int hbm_reduce_staged(hbm_operation *o);
int hbm_reduce_by_nodes(hbm_operation *o);
int hbm_allgather_by_nodes(hbm_operation *o);
/* reduce_scatter.c */
int hbm_reduce_scatter(hbm_operation *o);
/* scan.c */
int hbm_scan_eager(hbm_operation *o);
int hbm_scan(hbm_operation *o);

/* paths.c */
int hbm_agrees(const hbm_operation *o);

#endif
