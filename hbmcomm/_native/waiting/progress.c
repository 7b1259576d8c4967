/* Advancing operations in flight: each communicator has a queue of which the first advances, and
   every wait in this process advances the first of all queues.

   Ordering: the communicator's lock guards its queue. `calls` is stored with release after all that
   the call read, so a rank that loads it with acquire may reuse what was read. `status` is stored
   with release after the results, for threads that test it without the lock.

   Models: communicator/failure.pml, rendezvous/posts.pml */
#include "waiting/progress.h"

#include "cpu/clock.h"
#include "communicator/failure.h"
#include "cpu/fork.h"
#include "waiting/in_flight.h"
#include "communicator/lock.h"
#include "waiting/requests.h"
#include "cpu/unpack.h"

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

static void advance_one(hbm_comm *c)
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
                advance_one(active[i]);
            hbm_release(active[i]);
        }
    } while (n == AT_A_TIME);
}
