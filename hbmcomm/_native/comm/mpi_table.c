/* MPI's functions, called through a table, so that one binary works with every MPI.

   A rank that waits in this library polls MPI now and then, so that MPI's own operations advance.
   An Iprobe on COMM_WORLD does that under all MPIs that were tried, unless it finds a message.

   Ordering: `usable` is stored with release after the table, and loaded with acquire before it. */
#include "comm/mpi_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

#include "memory/fork.h"

#define STATUS_BYTES 256 /* more than any MPI_Status has */
#define TAGS 4 /* that programs hardly use: MPI may skip its other work when it finds a message */

typedef int (*iprobe)(int source, int tag, uint64_t comm, int *flag, void *status);

hbm_mpi hbm_mpi_table;
static _Atomic int usable;
static unsigned forks; /* at the time when the table was filled */
static pthread_t main_thread;
static _Thread_local int polling; /* this thread is inside MPI at our request */
static _Thread_local int in_hook; /* this thread is in a hook of MPICH */
static _Thread_local int beside;  /* as hbm_set_beside() has said */

void hbm_fill_mpi_table(const hbm_mpi *functions)
{
    if (functions) {
        hbm_mpi_table = *functions;
        main_thread = pthread_self();
        forks = hbm_forks();
    }
    atomic_store_explicit(&usable, functions != NULL, memory_order_release);
}

/* A child of a fork must not call its parent's MPI. */
int hbm_has_mpi(void)
{
    return atomic_load_explicit(&usable, memory_order_acquire) && forks == hbm_forks();
}

int hbm_serves_requests(void) { return hbm_has_mpi() && hbm_mpi_table.serves_requests; }

int hbm_is_mpi_thread(void)
{
    if (!hbm_has_mpi())
        return 0;
    switch (hbm_mpi_table.threads) {
    case HBM_MULTIPLE:
        return 1;
    case HBM_SERIALIZED:
        return !beside;
    default:
        return pthread_equal(pthread_self(), main_thread);
    }
}

int hbm_set_beside(int is_beside)
{
    int was = beside;
    beside = is_beside;
    return was;
}

void hbm_set_in_hook(int is_in) { in_hook = is_in; }

int hbm_in_hook(void) { return in_hook; }

void hbm_begin_mpi(void) { polling = 1; }

void hbm_end_mpi(void) { polling = 0; }

int hbm_may_call_mpi(void) { return !polling && hbm_is_mpi_thread(); }

void hbm_progress_mpi(void)
{
    _Alignas(16) char status[STATUS_BYTES];
    int flag = 1;
    if (!hbm_may_call_mpi())
        return;
    polling = 1;
    for (int tag = hbm_mpi_table.last_tag; flag && tag > hbm_mpi_table.last_tag - TAGS; tag--)
        ((iprobe)hbm_mpi_table.iprobe)(hbm_mpi_table.any_source, tag, hbm_mpi_table.world, &flag,
                                       status);
    polling = 0;
}
