/* The wire between hosts over messages of MPI.

   MPI's hooks advance operations while a rank is inside MPI: it may send and test there, but what
   it calls must not advance operations again, so hbm_begin_mpi() keeps other communicators of this
   thread out. MPICH lets a hook send and receive, and look whether requests are complete.

   Ordering: MPI's own. */
#include "comm/mpi_table.h"

#include <string.h>

#define FEW 64 /* requests that are tested at once */
#define STATUS_BYTES 64 /* as long as any MPI_Status */

typedef int (*isend)(const void *from, int count, uint64_t type, int rank, int tag, uint64_t comm,
                     void *request);
typedef int (*irecv)(void *to, int count, uint64_t type, int rank, int tag, uint64_t comm,
                     void *request);
typedef _Bool (*is_complete)(uint64_t request);
typedef int (*wait_for)(void *request, void *status);
typedef int (*testsome)(int n, void *requests, int *done, int *indices, void *statuses);

static int may(void *comm)
{
    (void)comm;
    return hbm_may_call_mpi() && (!hbm_in_hook() || hbm_mpi_table.is_complete);
}

static int send(void *comm, int rank, int tag, const void *from, uint64_t bytes, uint64_t *request)
{
    *request = 0;
    hbm_begin_mpi();
    int code = ((isend)hbm_mpi_table.isend)(from, (int)bytes, hbm_mpi_table.byte, rank, tag,
                                            (uint64_t)(uintptr_t)comm, request);
    hbm_end_mpi();
    return code;
}

static int receive(void *comm, int rank, int tag, void *to, uint64_t bytes, uint64_t *request)
{
    *request = 0;
    hbm_begin_mpi();
    int code = ((irecv)hbm_mpi_table.irecv)(to, (int)bytes, hbm_mpi_table.byte, rank, tag,
                                            (uint64_t)(uintptr_t)comm, request);
    hbm_end_mpi();
    return code;
}

/* Handles are as long as MPI's: an int or a pointer. */
static int test_few(uint64_t *requests, int n)
{
    _Alignas(16) char statuses[FEW * STATUS_BYTES], handles[FEW * sizeof(uint64_t)];
    int indices[FEW], done = 0;
    size_t bytes = (size_t)hbm_mpi_table.handle_bytes;
    for (int i = 0; i < n; i++)
        memcpy(handles + (size_t)i * bytes, &requests[i], bytes);
    int code = ((testsome)hbm_mpi_table.testsome)(n, handles, &done, indices, statuses);
    for (int i = 0; i < done && !code; i++) /* less than 0: all are null */
        requests[indices[i]] = 0;
    return code;
}

/* A wait for what is complete does not advance MPI. */
static int end_complete(uint64_t *requests, int n)
{
    _Alignas(16) char status[STATUS_BYTES];
    int code = 0;
    for (int i = 0; i < n && !code; i++)
        if (((is_complete)hbm_mpi_table.is_complete)(requests[i])) {
            code = ((wait_for)hbm_mpi_table.wait)(&requests[i], status);
            requests[i] = 0;
        }
    return code;
}

static int test(void *comm, uint64_t *requests, int n)
{
    (void)comm;
    int code = 0;
    if (hbm_in_hook())
        return end_complete(requests, n);
    hbm_begin_mpi();
    for (int at = 0; at < n && !code; at += FEW)
        code = test_few(requests + at, n - at < FEW ? n - at : FEW);
    hbm_end_mpi();
    return code;
}

int hbm_wire_of_mpi(uint64_t comm, hbm_wire *wire)
{
    /* Open MPI's TCP asks a receiver from 64 KiB on, and the answer is late where that has no CPU;
       a longer message takes longer than that. Handles of Open MPI are pointers. */
    const uint64_t least_long = 512 * 1024;
    int asks = hbm_mpi_table.handle_bytes == sizeof(void *);
    *wire = (hbm_wire){.self = (void *)(uintptr_t)comm, .may = may, .send = send,
                       .receive = receive, .test = test, .long_bytes = least_long,
                       .short_bytes = asks ? 60 * 1024 : least_long, .most = 1u << 30};
    return hbm_has_mpi() && hbm_mpi_table.isend && hbm_mpi_table.irecv && hbm_mpi_table.testsome;
}
