/* The table of MPI's functions, filled when MPI starts, and polling MPI. */
#ifndef HBMCOMM_MPI_TABLE_H
#define HBMCOMM_MPI_TABLE_H

#include "api.h"

extern hbm_mpi hbm_mpi_table;

/* Whether the table is filled; whether this thread may call MPI now; whether it may and is not inside
   the poll of hbm_progress_mpi(). */
int hbm_has_mpi(void);
int hbm_is_mpi_thread(void);
int hbm_may_call_mpi(void);

/* Around calls of MPI that advance MPI, and so its hooks: in between, hbm_may_call_mpi() is 0. */
void hbm_begin_mpi(void);
void hbm_end_mpi(void);

/* Whether this thread is in a hook of MPICH, which holds a lock: no call may advance MPI there. */
void hbm_set_in_hook(int is_in);
int hbm_in_hook(void);

/* Fills the table; NULL: MPI has ended. */
void hbm_fill_mpi_table(const hbm_mpi *functions);

/* Advances MPI's own operations. */
void hbm_progress_mpi(void);

#endif
