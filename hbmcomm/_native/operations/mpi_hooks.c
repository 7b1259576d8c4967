/* A rank that waits in MPI advances our operations. Open MPI and MPICH take a function that they
   call whenever they poll; under others a thread advances our operations every 200 us while there
   are any.

   Ordering: the flags that threads exchange here guard no data; what operations need is ordered by
   the lock of their communicator. The watcher stores `asleep`, fences, and counts the operations;
   wake_watcher() exchanges `asleep` after an operation was added. So one of them sees the other's
   store. */
#include "operations/mpi_hooks.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "waiting/mpi_table.h"
#include "waiting/progress.h"
#include "waiting/requests.h"

#define PERIOD_NS (200 * 1000)
#define IDLE_POLLS 1000 /* after which MPICH's hook is removed */

typedef int (*register_progress)(int (*progress)(void));
typedef int (*async_start)(int (*poll)(void *thing), void *state, uint64_t stream);

static _Atomic int hooked, letting_go, ending;
static _Atomic uint32_t asleep; /* the watcher, until it is woken */
static int has_watcher;
static pthread_t watcher;

static int poll_for_open_mpi(void)
{
    hbm_progress_others(NULL);
    return 0;
}

static int poll_for_mpich(void *thing)
{
    static _Thread_local int idle;
    (void)thing;
    hbm_progress_others(NULL);
    idle = hbm_in_flight() ? 0 : idle + 1;
    if (idle < IDLE_POLLS && !atomic_load_explicit(&letting_go, memory_order_acquire))
        return 0; /* MPIX_ASYNC_NOPROGRESS */
    idle = 0;
    atomic_store_explicit(&hooked, 0, memory_order_release);
    return 1; /* MPIX_ASYNC_DONE */
}

/* Under an MPI without such hooks. The thread sleeps while nothing is in flight. */
static void *watch(void *nothing)
{
    struct timespec period = {.tv_nsec = PERIOD_NS};
    (void)nothing;
    while (!atomic_load_explicit(&ending, memory_order_acquire)) {
        atomic_store(&asleep, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (!hbm_in_flight())
            syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        atomic_store(&asleep, 0);
        for (int idle = 0; idle < IDLE_POLLS; idle = hbm_in_flight() ? 0 : idle + 1) {
            nanosleep(&period, NULL);
            hbm_progress_others(NULL);
        }
    }
    return NULL;
}

static void wake_watcher(void)
{
    if (atomic_exchange(&asleep, 0))
        syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void start_watcher(void)
{
    sigset_t all, before;
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    has_watcher = !pthread_create(&watcher, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void hbm_watch(void)
{
    if (!hbm_has_mpi())
        return;
    if (hbm_mpi_table.async_start) {
        if (!atomic_load_explicit(&hooked, memory_order_acquire) && hbm_may_call_mpi()
            && !atomic_exchange(&hooked, 1))
            ((async_start)hbm_mpi_table.async_start)(poll_for_mpich, NULL, hbm_mpi_table.stream);
    } else if (hbm_mpi_table.register_progress) {
        if (!atomic_load_explicit(&hooked, memory_order_relaxed) && !atomic_exchange(&hooked, 1))
            ((register_progress)hbm_mpi_table.register_progress)(poll_for_open_mpi);
    } else if (!atomic_exchange(&hooked, 1)) {
        start_watcher();
    } else {
        wake_watcher();
    }
}

static void end(void)
{
    hbm_free_stock();
    atomic_store_explicit(&ending, 1, memory_order_release);
    if (has_watcher) {
        wake_watcher();
        pthread_join(watcher, NULL);
        has_watcher = 0;
    } else if (hbm_mpi_table.async_start && atomic_load_explicit(&hooked, memory_order_acquire)) {
        atomic_store_explicit(&letting_go, 1, memory_order_release);
        for (int i = 0; i < IDLE_POLLS && atomic_load_explicit(&hooked, memory_order_acquire); i++)
            hbm_progress_mpi();
    }
    hbm_fill_mpi_table(NULL);
}

void hbm_use_mpi(const hbm_mpi *functions)
{
    if (!functions) {
        if (hbm_has_mpi())
            end();
        return;
    }
    hbm_fill_mpi_table(functions);
}
