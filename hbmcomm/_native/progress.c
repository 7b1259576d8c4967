/* Operations in flight: each communicator has a queue of which the first advances; and whoever waits
   anywhere in this process lets the first of all queues advance.

   A communicator is locked while its operations advance. `lock` has two bits: LOCKED for whoever
   advances them, however briefly, and INSIDE for a thread that is in a blocking call, from its
   beginning to its end: a second such thread is sent away. The list of communicators with
   operations in flight has a mutex, which is not held while anything advances. */
#include "comm.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "fork.h"

#define MOST_AT_A_TIME 64

enum { LOCKED = 1, INSIDE = 2 };

/* ---- the lock of a communicator ---- */

static int try_lock(hbm_comm *c, int bits, int refused)
{
    int found = atomic_load_explicit(&c->lock, memory_order_relaxed);
    return !(found & refused)
           && atomic_compare_exchange_strong_explicit(&c->lock, &found, found | bits,
                                                      memory_order_acquire, memory_order_relaxed);
}

/* HBM_BUSY where another thread is in a blocking call and this one may not be. */
static int lock(hbm_comm *c, int bits, int refused)
{
    while (!try_lock(c, bits, refused)) {
        if (atomic_load_explicit(&c->lock, memory_order_relaxed) & refused & INSIDE)
            return HBM_BUSY;
        sched_yield(); /* whoever advances its operations is soon done */
    }
    return HBM_OK;
}

void hbm_lock_again(hbm_comm *c) { lock(c, LOCKED, LOCKED); }

void hbm_unlock(hbm_comm *c)
{
    atomic_fetch_and_explicit(&c->lock, ~LOCKED, memory_order_release);
}

/* For a blocking call; only HBM_OK means that it is locked. */
int hbm_enter_call(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED | INSIDE, LOCKED | INSIDE);
}

void hbm_leave_call(hbm_comm *c)
{
    if (c->ring_later)
        hbm_ring(c);
    atomic_store_explicit(&c->lock, 0, memory_order_release);
}

/* For starting an operation. */
int hbm_enter_start(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED, LOCKED | INSIDE);
}

/* For looking after operations that were started. */
int hbm_enter_wait(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED, LOCKED);
}

void hbm_leave_wait(hbm_comm *c)
{
    if (c->ring_later)
        hbm_ring(c);
    hbm_unlock(c);
}

/* ---- the communicators with operations that nobody waits for ---- */

static pthread_mutex_t listing = PTHREAD_MUTEX_INITIALIZER;
static hbm_comm *listed; /* those that had such operations once, and are not closed */
static _Atomic int in_flight;

static void list(hbm_comm *c)
{
    if (c->is_listed)
        return;
    c->is_listed = 1;
    pthread_mutex_lock(&listing);
    c->next_listed = listed;
    listed = c;
    pthread_mutex_unlock(&listing);
}

/* It has no operations in flight, and will have none. */
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

/* Those with operations in flight at this moment, as many as there is room for. */
static int list_active(hbm_comm **found, int most)
{
    int n = 0;
    pthread_mutex_lock(&listing);
    for (hbm_comm *c = listed; c && n < most; c = c->next_listed)
        if (atomic_load_explicit(&c->flying, memory_order_relaxed)) {
            atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
            found[n++] = c;
        }
    pthread_mutex_unlock(&listing);
    return n;
}

void hbm_progress_others(const hbm_comm *waiting)
{
    hbm_comm *found[MOST_AT_A_TIME];
    int n = atomic_load_explicit(&in_flight, memory_order_relaxed);
    if (waiting) /* its own do not count: they advance while it waits */
        n -= atomic_load_explicit(&waiting->flying, memory_order_relaxed);
    n = n ? list_active(found, MOST_AT_A_TIME) : 0;
    for (int i = 0; i < n; i++) {
        hbm_comm *c = found[i];
        if (c != waiting && c->forks == hbm_forks() && try_lock(c, LOCKED, LOCKED)) {
            hbm_progress(c);
            hbm_look(c);
            hbm_leave_wait(c);
        }
        hbm_release(c);
    }
}

uint64_t hbm_in_flight(void)
{
    return (uint64_t)atomic_load_explicit(&in_flight, memory_order_relaxed);
}

/* ---- the queue of a communicator, which is locked ---- */

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

/* Nobody waits for this operation in a blocking call: all waits of the process look after it. */
void hbm_let_fly(hbm_operation *o)
{
    atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&o->comm->flying, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&in_flight, 1, memory_order_relaxed);
    o->is_flying = 1;
    list(o->comm);
}

static void finish(hbm_operation *o, int status)
{
    hbm_comm *c = o->comm;
    int flying = o->is_flying;
    c->head = o->next;
    if (status == HBM_OK)
        hbm_unpack(&o->call);
    else
        hbm_hold_back(o);
    if (flying) {
        atomic_fetch_sub_explicit(&c->flying, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&in_flight, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&o->status, status, memory_order_release);
    if (flying) {
        hbm_end_request(o);
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
            hbm_blame(c, status, c->rank); /* unless it is known already */
            break;
        }
        if (hbm_was_left(o))
            break;
        count_hops(o);
        atomic_store_explicit(&c->own->calls.value, o->sequence, memory_order_release);
        c->ring_later = 1;
        finish(o, HBM_OK);
    }
    while (c->failure.status && c->head)
        finish(c->head, c->failure.status);
}

/* Brings an operation to its end; HBM_PENDING where a signal's handler wants this thread out. */
int hbm_complete(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    for (;;) {
        hbm_progress(c);
        int status = atomic_load_explicit(&o->status, memory_order_acquire);
        if (status != HBM_PENDING)
            return status;
        if (hbm_await(c) == HBM_INTERRUPTED)
            return HBM_PENDING;
    }
}
