/* The list of communicators with operations in flight outside blocking calls.

   Ordering: a mutex guards the list; it is not held while operations advance. The counts are
   relaxed: they only decide whether a look at the list is worth while, and the next poll looks
   again; mpi_hooks.c fences where no poll follows. A fork takes the mutex first, so that the child
   finds it free; its list is empty, because it can advance no operation of its parent.

   Model: waiting/in_flight.pml */
#include "waiting/in_flight.h"

#include <pthread.h>

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
