/* The calls of MPI that are counted: CALL(name, count, type, place, root).
 *
 * count, type: which arguments say how much this rank gives or takes; 0: none says it.
 * place: the argument that, where it is MPI_IN_PLACE, leaves those two without a meaning; 0: none.
 * root: the argument that names a root; below 0, in a call between groups, all others may be
 * without a meaning; 0: none.
 * LARGE has the calls that MPI 4 has with counts of 64 bits as well, under a name with _c.
 */

#define COLLECTIVE(prefix)                                                                         \
    LARGE(prefix(bcast, Bcast), 2, 3, 0, 4)                                                        \
    LARGE(prefix(gather, Gather), 2, 3, 1, 7)                                                      \
    LARGE(prefix(gatherv, Gatherv), 2, 3, 1, 8)                                                    \
    LARGE(prefix(scatter, Scatter), 5, 6, 4, 7)                                                    \
    LARGE(prefix(scatterv, Scatterv), 6, 7, 5, 8)                                                  \
    LARGE(prefix(allgather, Allgather), 5, 6, 0, 0)                                                \
    LARGE(prefix(allgatherv, Allgatherv), 2, 3, 1, 0)                                              \
    LARGE(prefix(alltoall, Alltoall), 5, 6, 0, 0)                                                  \
    LARGE(prefix(alltoallv, Alltoallv), 0, 0, 0, 0)                                                \
    LARGE(prefix(alltoallw, Alltoallw), 0, 0, 0, 0)                                                \
    LARGE(prefix(reduce, Reduce), 3, 4, 0, 6)                                                      \
    LARGE(prefix(allreduce, Allreduce), 3, 4, 0, 0)                                                \
    LARGE(prefix(reduce_scatter, Reduce_scatter), 0, 0, 0, 0)                                      \
    LARGE(prefix(reduce_scatter_block, Reduce_scatter_block), 3, 4, 0, 0)                          \
    LARGE(prefix(scan, Scan), 3, 4, 0, 0)                                                          \
    LARGE(prefix(exscan, Exscan), 3, 4, 0, 0)                                                      \
    LARGE(prefix(neighbor_allgather, Neighbor_allgather), 2, 3, 0, 0)                              \
    LARGE(prefix(neighbor_allgatherv, Neighbor_allgatherv), 2, 3, 0, 0)                            \
    LARGE(prefix(neighbor_alltoall, Neighbor_alltoall), 2, 3, 0, 0)                                \
    LARGE(prefix(neighbor_alltoallv, Neighbor_alltoallv), 0, 0, 0, 0)                              \
    LARGE(prefix(neighbor_alltoallw, Neighbor_alltoallw), 0, 0, 0, 0)                              \
    CALL(prefix(barrier, Barrier), 0, 0, 0, 0)
#define BLOCKING(lower, upper) upper
#define NONBLOCKING(lower, upper) I##lower

#define SENDS                                                                                      \
    LARGE(Send, 2, 3, 0, 0) LARGE(Ssend, 2, 3, 0, 0) LARGE(Bsend, 2, 3, 0, 0)                      \
    LARGE(Rsend, 2, 3, 0, 0) LARGE(Isend, 2, 3, 0, 0) LARGE(Issend, 2, 3, 0, 0)                    \
    LARGE(Ibsend, 2, 3, 0, 0) LARGE(Irsend, 2, 3, 0, 0) LARGE(Recv, 2, 3, 0, 0)                    \
    LARGE(Irecv, 2, 3, 0, 0) LARGE(Mrecv, 2, 3, 0, 0) LARGE(Imrecv, 2, 3, 0, 0)                    \
    LARGE(Sendrecv, 2, 3, 0, 0) LARGE(Sendrecv_replace, 2, 3, 0, 0)

#define WAITS                                                                                      \
    CALL(Wait, 0, 0, 0, 0) CALL(Waitall, 0, 0, 0, 0) CALL(Waitany, 0, 0, 0, 0)                     \
    CALL(Waitsome, 0, 0, 0, 0) CALL(Test, 0, 0, 0, 0) CALL(Testall, 0, 0, 0, 0)                    \
    CALL(Testany, 0, 0, 0, 0) CALL(Testsome, 0, 0, 0, 0) CALL(Probe, 0, 0, 0, 0)                   \
    CALL(Iprobe, 0, 0, 0, 0) CALL(Mprobe, 0, 0, 0, 0) CALL(Improbe, 0, 0, 0, 0)                    \
    CALL(Start, 0, 0, 0, 0) CALL(Startall, 0, 0, 0, 0)

#define WINDOWS                                                                                    \
    LARGE(Put, 2, 3, 0, 0) LARGE(Get, 2, 3, 0, 0) LARGE(Rput, 2, 3, 0, 0)                          \
    LARGE(Rget, 2, 3, 0, 0) LARGE(Accumulate, 2, 3, 0, 0) LARGE(Raccumulate, 2, 3, 0, 0)           \
    CALL(Fetch_and_op, 0, 0, 0, 0) CALL(Compare_and_swap, 0, 0, 0, 0)                              \
    CALL(Win_create, 0, 0, 0, 0) CALL(Win_allocate, 0, 0, 0, 0)                                    \
    CALL(Win_allocate_shared, 0, 0, 0, 0) CALL(Win_free, 0, 0, 0, 0) CALL(Win_fence, 0, 0, 0, 0)   \
    CALL(Win_lock, 0, 0, 0, 0) CALL(Win_unlock, 0, 0, 0, 0) CALL(Win_lock_all, 0, 0, 0, 0)         \
    CALL(Win_unlock_all, 0, 0, 0, 0) CALL(Win_flush, 0, 0, 0, 0) CALL(Win_flush_all, 0, 0, 0, 0)   \
    CALL(Win_post, 0, 0, 0, 0) CALL(Win_start, 0, 0, 0, 0) CALL(Win_complete, 0, 0, 0, 0)          \
    CALL(Win_wait, 0, 0, 0, 0)

#define FILES                                                                                      \
    CALL(File_open, 0, 0, 0, 0) CALL(File_close, 0, 0, 0, 0) CALL(File_sync, 0, 0, 0, 0)           \
    CALL(File_set_view, 0, 0, 0, 0) LARGE(File_read, 3, 4, 0, 0) LARGE(File_read_all, 3, 4, 0, 0)  \
    LARGE(File_read_at, 4, 5, 0, 0) LARGE(File_read_at_all, 4, 5, 0, 0)                            \
    LARGE(File_write, 3, 4, 0, 0) LARGE(File_write_all, 3, 4, 0, 0)                                \
    LARGE(File_write_at, 4, 5, 0, 0) LARGE(File_write_at_all, 4, 5, 0, 0)

#define COMMUNICATORS                                                                              \
    CALL(Comm_dup, 0, 0, 0, 0) CALL(Comm_split, 0, 0, 0, 0) CALL(Comm_split_type, 0, 0, 0, 0)      \
    CALL(Comm_create, 0, 0, 0, 0) CALL(Comm_free, 0, 0, 0, 0)

#define CALLS                                                                                      \
    COLLECTIVE(BLOCKING) COLLECTIVE(NONBLOCKING) SENDS WAITS WINDOWS FILES COMMUNICATORS
