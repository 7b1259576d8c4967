/* How MPI and this library let each other go on.

   A rank that waits here calls into MPI now and then, so that MPI's own operations advance: an Iprobe
   on COMM_WORLD does that under all MPIs that were tried, unless it finds a message. A rank that waits in MPI advances ours:
   Open MPI and MPICH take a function that they call whenever they poll; elsewhere a thread looks
   after our operations every 200 us, as long as there are any. So an operation of ours that is in
   flight can be a generalized request: MPI may wait for it together with its own. */
#include "comm.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS (200 * 1000)
#define IDLE_POLLS 1000 /* after which MPICH's hook is let go */
#define STATUS_BYTES 256 /* more than any MPI_Status has */
#define STOCK 8
#define TAGS 4 /* that programs hardly use: a message found keeps MPI from looking after the others */

typedef int (*iprobe)(int source, int tag, uint64_t comm, int *flag, void *status);
typedef int (*query)(void *extra, void *status);
typedef int (*release)(void *extra);
typedef int (*cancel)(void *extra, int complete);
typedef int (*grequest_start)(query, release, cancel, void *extra, void *request);
typedef int (*grequest_complete)(uint64_t request);
typedef int (*wait_for)(void *request, void *status);
typedef int (*register_progress)(int (*progress)(void));
typedef int (*async_start)(int (*poll)(void *thing), void *state, uint64_t stream);
typedef int (*set_elements)(void *status, uint64_t type, int count);
typedef int (*set_cancelled)(void *status, int flag);

static hbm_mpi mpi;
static _Atomic int usable, hooked, letting_go, ending;
static _Atomic uint32_t asleep; /* the watcher, for good */
static int has_watcher;
static pthread_t main_thread, watcher;
static _Thread_local int polling; /* this thread is inside MPI at our request */

int hbm_has_mpi(void) { return atomic_load_explicit(&usable, memory_order_acquire); }

/* Whether operations may be in flight while a rank waits in MPI alone. */
int hbm_serves_requests(void) { return hbm_has_mpi() && mpi.serves_requests; }

static int may_call(void)
{
    return hbm_has_mpi() && !polling
           && (!mpi.main_thread_only || pthread_equal(pthread_self(), main_thread));
}

void hbm_progress_mpi(void)
{
    _Alignas(16) char status[STATUS_BYTES];
    int found = 1;
    if (!may_call())
        return;
    polling = 1;
    for (int tag = mpi.last_tag; found && tag > mpi.last_tag - TAGS; tag--)
        ((iprobe)mpi.iprobe)(mpi.any_source, tag, mpi.world, &found, status);
    polling = 0;
}

/* ---- MPI's waits look after our operations ---- */

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

/* Under an MPI that takes no such function. It sleeps for good while there is nothing in flight. */
static void *look_after(void *nothing)
{
    struct timespec period = {.tv_nsec = PERIOD_NS};
    (void)nothing;
    while (!atomic_load_explicit(&ending, memory_order_acquire)) {
        atomic_store(&asleep, 1);
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
    has_watcher = !pthread_create(&watcher, NULL, look_after, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* There is an operation in flight: MPI's waits must look after it. */
void hbm_watch(void)
{
    if (!hbm_has_mpi())
        return;
    if (mpi.async_start) {
        if (!atomic_load_explicit(&hooked, memory_order_acquire) && may_call()
            && !atomic_exchange(&hooked, 1))
            ((async_start)mpi.async_start)(poll_for_mpich, NULL, mpi.stream);
    } else if (mpi.register_progress) {
        if (!atomic_load_explicit(&hooked, memory_order_relaxed) && !atomic_exchange(&hooked, 1))
            ((register_progress)mpi.register_progress)(poll_for_open_mpi);
    } else if (!atomic_exchange(&hooked, 1)) {
        start_watcher();
    } else {
        wake_watcher();
    }
}

/* ---- generalized requests ---- */

static int query_operation(void *extra, void *status)
{
    const hbm_operation *o = extra; /* or NULL: of a request that was made complete */
    ((set_elements)mpi.status_set_elements)(status, mpi.byte, 0);
    ((set_cancelled)mpi.status_set_cancelled)(status, 0);
    return !o || atomic_load_explicit(&o->status, memory_order_acquire) == HBM_OK ? 0 : mpi.error;
}

/* MPI has freed its handle. */
static int release_operation(void *extra)
{
    hbm_operation *o = extra;
    if (o) {
        atomic_store_explicit(&o->request, 0, memory_order_release);
        hbm_drop(o);
    }
    return 0;
}

static int refuse_to_cancel(void *extra, int complete)
{
    (void)extra;
    return complete ? 0 : mpi.error;
}

/* Where MPI's handle is in a request of mpi4py's. */
static void *place_in(uintptr_t request) { return (void *)(request + mpi.handle_at); }

/* The operation, which is locked and not complete, becomes one that MPI can wait for. */
void hbm_begin_request(hbm_operation *o, uintptr_t request)
{
    uint64_t handle = 0;
    if (!request || !may_call())
        return;
    atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
    if (((grequest_start)mpi.grequest_start)(query_operation, release_operation, refuse_to_cancel, o,
                                             place_in(request)) != 0) {
        hbm_drop(o);
        return;
    }
    memcpy(&handle, place_in(request), (size_t)mpi.handle_bytes);
    atomic_store_explicit(&o->request, handle, memory_order_release);
}

/* It is complete: whoever waits for it in MPI may go on. */
void hbm_end_request(hbm_operation *o)
{
    uint64_t handle = atomic_load_explicit(&o->request, memory_order_acquire);
    if (handle && hbm_has_mpi())
        ((grequest_complete)mpi.grequest_complete)(handle);
}

/* Gives back the handle of an operation that was waited for here; without its request, a copy of it. */
void hbm_free_request(hbm_operation *o, uintptr_t request)
{
    _Alignas(16) char status[STATUS_BYTES];
    uint64_t handle = atomic_load_explicit(&o->request, memory_order_acquire);
    if (handle && may_call())
        ((wait_for)mpi.wait)(request ? place_in(request) : &handle, status);
}

/* An operation that was complete as soon as it was started has a request as well, for MPI's Waitany
   and Waitsome must name it. To make and free one takes as long as such an operation, so each thread
   keeps those that were waited for here. */
static _Thread_local uint64_t stock[STOCK];
static _Thread_local int stocked;

void hbm_complete_request(uintptr_t request)
{
    uint64_t handle = 0;
    if (!request || !may_call())
        return;
    if (stocked)
        handle = stock[--stocked];
    else if (((grequest_start)mpi.grequest_start)(query_operation, release_operation,
                                                  refuse_to_cancel, NULL, &handle) == 0)
        ((grequest_complete)mpi.grequest_complete)(handle);
    else
        return;
    memcpy(place_in(request), &handle, (size_t)mpi.handle_bytes);
}

/* Nothing happens where it has no handle any more. */
void hbm_take_back_request(uintptr_t request)
{
    _Alignas(16) char status[STATUS_BYTES];
    uint64_t handle = 0;
    if (!request || !may_call())
        return;
    memcpy(&handle, place_in(request), (size_t)mpi.handle_bytes);
    if (handle == mpi.null_request)
        return;
    if (stocked == STOCK) {
        ((wait_for)mpi.wait)(place_in(request), status);
        return;
    }
    stock[stocked++] = handle;
    memcpy(place_in(request), &mpi.null_request, (size_t)mpi.handle_bytes);
}

static void free_stock(void)
{
    _Alignas(16) char status[STATUS_BYTES];
    while (stocked && may_call())
        ((wait_for)mpi.wait)(&stock[--stocked], status);
}

/* ---- MPI begins and ends ---- */

static void end(void)
{
    free_stock();
    atomic_store_explicit(&ending, 1, memory_order_release);
    if (has_watcher) {
        wake_watcher();
        pthread_join(watcher, NULL);
        has_watcher = 0;
    } else if (mpi.async_start && atomic_load_explicit(&hooked, memory_order_acquire)) {
        atomic_store_explicit(&letting_go, 1, memory_order_release);
        for (int i = 0; i < IDLE_POLLS && atomic_load_explicit(&hooked, memory_order_acquire); i++)
            hbm_progress_mpi();
    }
    atomic_store_explicit(&usable, 0, memory_order_release);
}

void hbm_use_mpi(const hbm_mpi *functions)
{
    if (!functions) {
        if (hbm_has_mpi())
            end();
        return;
    }
    mpi = *functions;
    main_thread = pthread_self();
    atomic_store_explicit(&usable, 1, memory_order_release);
}
