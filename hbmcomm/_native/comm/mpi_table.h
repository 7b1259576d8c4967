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

/* Fills the table; NULL: MPI has ended. */
void hbm_fill_mpi_table(const hbm_mpi *functions);

/* Advances MPI's own operations. */
void hbm_progress_mpi(void);

#endif
