/* Advancing operations in flight: each communicator has a queue of which the first advances, and
   every wait in this process advances the first of all queues.

   Ordering: the communicator's lock guards its queue. `calls` is stored with release after all that
   the call read, so a rank that loads it with acquire may reuse what was read. `status` is stored
   with release after the results, for threads that test it without the lock.

   Models: comm/failure.pml, comm/posts.pml */
#include "comm/failure.h"
#include "comm/lock.h"
#include "memory/fork.h"
#include "comm/progress.h"
#include "comm/requests.h"
#include "kernels/clock.h"
#include "kernels/copy.h"

#include <pthread.h>

#define AT_A_TIME 64 /* communicators that are listed at once: the stack has room for them */

void hbm_append(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    o->next = NULL;
    if (c->head)
        c->tail->next = o;
    else
        c->head = o;
    c->tail = o;
}

static void finish(hbm_operation *o, int status)
{
    hbm_comm *c = o->comm;
    int in_flight = o->is_in_flight;
    c->head = o->next;
    if (status == HBM_OK)
        hbm_unpack(&o->call);
    else
        hbm_hold_back(o);
    atomic_store_explicit(&o->status, status, memory_order_release);
    if (in_flight) {
        hbm_end_request(o);
        clear_in_flight(o); /* until here MPI's hook stays, which may have to end the request */
        hbm_drop(o);
    }
}

void hbm_progress(hbm_comm *c)
{
    while (c->head && !c->failure.status) {
        hbm_operation *o = c->head;
        int status = o->advance(o);
        if (status == HBM_PENDING)
            return;
        if (status != HBM_OK) {
            hbm_blame(c, status, c->rank); /* a failure that is already known stays */
            break;
        }
        if (hbm_was_abandoned(o))
            break;
        count_hops(o);
        atomic_store_explicit(&c->own->calls.value, o->sequence, memory_order_release);
        c->ring_later = 1;
        finish(o, HBM_OK);
    }
    while (c->failure.status && c->head)
        finish(c->head, c->failure.status);
}

/* Now and then, checks whether the first operation can still complete. Nobody may be waiting for it
   in a blocking call, which would check. */
static void check_awaited(hbm_comm *c)
{
    uint64_t now = now_ns();
    if (!c->head || now - c->looked < CHECK_NS)
        return;
    c->looked = now;
    if (hbm_cannot_arrive(c, &c->awaiting))
        hbm_progress(c);
}

void hbm_advance(hbm_comm *c)
{
    if (c->forks == hbm_forks() && try_lock(c, LOCKED, LOCKED)) {
        hbm_progress(c);
        check_awaited(c);
        hbm_leave_wait(c);
    }
}

void hbm_progress_others(const hbm_comm *waiting)
{
    hbm_comm *active[AT_A_TIME];
    hbm_end_requests();
    int n = atomic_load_explicit(&hbm_in_flight_count, memory_order_relaxed);
    if (waiting) /* the caller advances these itself */
        n -= atomic_load_explicit(&waiting->in_flight, memory_order_relaxed);
    if (!n)
        return;
    uint64_t below = UINT64_MAX; /* operations that start meanwhile wait for the next poll */
    do {
        n = hbm_list_active(active, AT_A_TIME, below);
        below = n ? active[n - 1]->number_listed : 0;
        for (int i = 0; i < n; i++) {
            if (active[i] != waiting)
                hbm_advance(active[i]);
            hbm_release(active[i]);
        }
    } while (n == AT_A_TIME);
}

/* The list of communicators with operations in flight outside blocking calls.

   Ordering: a mutex guards the list; it is not held while operations advance. The counts are
   relaxed: they only decide whether a look at the list is worth while, and the next poll looks
   again; mpi_hooks.c fences where no poll follows. A fork takes the mutex first, so that the child
   finds it free; its list is empty, because it can advance no operation of its parent.

   Model: comm/in_flight.pml */
static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static hbm_comm *listed; /* communicators that ever had such operations and are not closed */
static uint64_t last_number;
_Atomic int hbm_in_flight_count;

static void lock_list(void) { pthread_mutex_lock(&listing); }

static void unlock_list(void) { pthread_mutex_unlock(&listing); }

static void begin_child(void)
{
    listed = NULL;
    atomic_store_explicit(&hbm_in_flight_count, 0, memory_order_relaxed);
    pthread_mutex_unlock(&listing);
}

static void watch_forks(void) { pthread_atfork(lock_list, unlock_list, begin_child); }

static void list(hbm_comm *c)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (c->is_listed)
        return;
    pthread_once(&once, watch_forks);
    c->is_listed = 1;
    pthread_mutex_lock(&listing);
    c->number_listed = ++last_number;
    c->next_listed = listed;
    listed = c;
    pthread_mutex_unlock(&listing);
}

void hbm_unlist(hbm_comm *c)
{
    if (!c->is_listed)
        return;
    pthread_mutex_lock(&listing);
    hbm_comm **at = &listed;
    while (*at != c)
        at = &(*at)->next_listed;
    *at = c->next_listed;
    pthread_mutex_unlock(&listing);
    c->is_listed = 0;
}

int hbm_list_active(hbm_comm **active, int most, uint64_t below)
{
    int n = 0;
    pthread_mutex_lock(&listing);
    for (hbm_comm *c = listed; c && n < most; c = c->next_listed)
        if (c->number_listed < below
            && atomic_load_explicit(&c->in_flight, memory_order_relaxed)) {
            atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
            active[n++] = c;
        }
    pthread_mutex_unlock(&listing);
    return n;
}

void hbm_set_in_flight(hbm_operation *o)
{
    atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&o->comm->in_flight, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&hbm_in_flight_count, 1, memory_order_relaxed);
    o->is_in_flight = 1;
    list(o->comm);
}

uint64_t hbm_in_flight(void)
{
    return (uint64_t)atomic_load_explicit(&hbm_in_flight_count, memory_order_relaxed);
}
