/* Failures of a communicator. */
#ifndef HBMCOMM_FAILURE_H
#define HBMCOMM_FAILURE_H

#include "comm/comm.h"
#include "kernels/shapes.h"

/* A call as ranks record it in `history`; see pack() in posts.c. */
#define DTYPE_OF_CALL ((uint64_t)0xFF << 8)

static inline int only_moves(uint64_t what) { return !shape_of((int)(what & 0xFF))->reduces; }

/* What all ranks must name alike: MPI moves bytes between a rank that calls them doubles and one
   that calls them bytes. */
static inline uint64_t compared_part(uint64_t what)
{
    return only_moves(what) ? what & ~DTYPE_OF_CALL : what;
}

#define CHECK_NS (5 * 1000 * 1000) /* between two checks whether an awaited word can still arrive */

/* Each of these makes the communicator fail, unless it has failed before, and returns its
   status. */
int hbm_fail(hbm_comm *c, const hbm_failure *why);
int hbm_blame(hbm_comm *c, int status, int rank);
int hbm_blame_lengths(hbm_comm *c, int rank, uint64_t given, uint64_t expected);
int hbm_mismatch(hbm_comm *c, int rank);

/* Whether `rank` has left or died, any rank has failed, or one made a different call. */
int hbm_find_failure(hbm_comm *c, int rank, hbm_failure *why);

/* Whether an awaited word can no longer arrive. The communicator is locked, and has failed then. */
int hbm_cannot_arrive(hbm_comm *c, const awaited *a);

/* Whether a rank gave up a call that is complete here. It may have reused memory while this rank,
   or one that passed the data on, read it. */
int hbm_was_abandoned(hbm_operation *o);

/* Whether a rank's process has not died. */
int hbm_is_alive(const hbm_comm *c, int rank);

/* Others may still write into what a failed call receives: holds it back in the arena, and waits
   until nobody writes there elsewhere. */
void hbm_hold_back(hbm_operation *o);

#endif
