/* Two ranks call MPI so and so often; test_gate.py knows how often. */
#include <mpi.h>
#include <stdlib.h>

int main(int count, char **words) {
    int rank, size, provided;
    MPI_Init_thread(&count, &words, MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int one = 1, all[2] = {rank, rank}, counts[2] = {1, 1}, places[2] = {0, 1};
    char *large = calloc(1, 2 << 20);
    for (int i = 0; i < 3; i++)
        MPI_Allreduce(MPI_IN_PLACE, &one, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(large, large + (1 << 20), 1 << 18, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(large, 2 << 20, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Gather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    else
        MPI_Gather(all, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, 0, MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Scatterv(all, counts, places, MPI_INT, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, 0,
                     MPI_COMM_WORLD);
    else
        MPI_Scatterv(NULL, NULL, NULL, MPI_DATATYPE_NULL, all, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Alltoallv(all, counts, places, MPI_INT, large, counts, places, MPI_INT, MPI_COMM_WORLD);
    MPI_Sendrecv(all, 2, MPI_INT, 1 - rank, 7, large, 2, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Request requests[2];
    MPI_Irecv(large, 1000, MPI_BYTE, 1 - rank, 8, MPI_COMM_WORLD, requests);
    MPI_Isend(large + 4000, 1000, MPI_BYTE, 1 - rank, 8, MPI_COMM_WORLD, requests + 1);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, requests);
    MPI_Wait(requests, MPI_STATUS_IGNORE);
    PMPI_Barrier(MPI_COMM_WORLD);
    free(large);
    return MPI_Finalize();
}
