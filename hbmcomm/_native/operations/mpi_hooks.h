/* Hooks in MPI that advance our operations while a rank waits in MPI. */
#ifndef HBMCOMM_MPI_HOOKS_H
#define HBMCOMM_MPI_HOOKS_H

/* An operation is in flight: MPI's waits must advance it. */
void hbm_watch(void);

#endif
