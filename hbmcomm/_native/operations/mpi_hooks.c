/* A rank that waits in MPI advances our operations. Open MPI and MPICH take a function that they
   call whenever they poll; under others a thread advances our operations every 200 us while there
   are any.

   Ordering: the flags that threads exchange here guard no data; what operations need is ordered by
   the lock of their communicator. Two rules need fences (seq_cst).
   - Sleep of the thread: it stores `asleep`, fences, and loads the number of operations and
     `ending`. A thread that adds an operation, or ends MPI, fences after its store and exchanges
     `asleep`. So one of the two sees the store of the other.
   - Removal of MPICH's hook: the hook stores 0 in `hooked`, fences, and loads the number of
     operations. A thread that adds one fences after its store and loads `hooked`. So the thread
     registers the hook again, or the hook itself does.

   Models: operations/mpi_hooks.pml, operations/wake.pml, comm/in_flight.pml */
#include "operations/mpi_hooks.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "comm/mpi_table.h"
#include "comm/progress.h"
#include "comm/requests.h"
#include "memory/fork.h"

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
    hbm_set_in_hook(1);
    hbm_progress_others(NULL);
    hbm_set_in_hook(0);
    idle = hbm_in_flight() ? 0 : idle + 1;
    if (idle < IDLE_POLLS && !atomic_load_explicit(&letting_go, memory_order_acquire))
        return 0; /* MPIX_ASYNC_NOPROGRESS */
    idle = 0;
    atomic_store_explicit(&hooked, 0, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&letting_go, memory_order_acquire) && hbm_in_flight()
        && !atomic_exchange(&hooked, 1))
        return 0; /* an operation started meanwhile and may have found the hook in place */
    return 1; /* MPIX_ASYNC_DONE */
}

static int ends(void) { return atomic_load_explicit(&ending, memory_order_acquire); }

/* Under an MPI without such hooks. The thread sleeps while nothing is in flight. */
static void *watch(void *nothing)
{
    struct timespec period = {.tv_nsec = PERIOD_NS};
    (void)nothing;
    hbm_set_beside(1);
    while (!ends()) {
        atomic_store(&asleep, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (!hbm_in_flight() && !ends())
            syscall(SYS_futex, &asleep, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        atomic_store(&asleep, 0);
        for (int idle = 0; idle < IDLE_POLLS && !ends(); idle = hbm_in_flight() ? 0 : idle + 1) {
            nanosleep(&period, NULL);
            hbm_progress_others(NULL);
        }
    }
    return NULL;
}

/* After an operation was added, or `ending` was stored. */
static void wake_watcher(void)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_exchange(&asleep, 0))
        syscall(SYS_futex, &asleep, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void hbm_watch(void)
{
    if (!hbm_has_mpi())
        return;
    if (hbm_mpi_table.async_start) {
        atomic_thread_fence(memory_order_seq_cst); /* after the count, before `hooked` */
        if (!atomic_load_explicit(&hooked, memory_order_acquire) && hbm_may_call_mpi()
            && !atomic_exchange(&hooked, 1))
            ((async_start)hbm_mpi_table.async_start)(poll_for_mpich, NULL, hbm_mpi_table.stream);
    } else if (hbm_mpi_table.register_progress) {
        if (!atomic_load_explicit(&hooked, memory_order_relaxed) && !atomic_exchange(&hooked, 1))
            ((register_progress)hbm_mpi_table.register_progress)(poll_for_open_mpi);
    } else if (!atomic_exchange(&hooked, 1)) {
        has_watcher = !hbm_start_thread(&watcher, NULL, watch, NULL);
        if (!has_watcher) /* the next operation tries again */
            atomic_store_explicit(&hooked, 0, memory_order_release);
    } else {
        wake_watcher();
    }
}

static void end(void)
{
    hbm_end_requests();
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
