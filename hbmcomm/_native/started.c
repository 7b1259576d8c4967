/* Operations that are started now and completed later.

   One that is in flight belongs to its owner, to the queue that it is in, and to MPI's request; the
   last of them frees it. Its memory is kept for the next and never given back: who was interrupted may
   ask for an operation a second time, and its number must then tell that it is gone. */
#include "comm.h"

#include <pthread.h>
#include <stdlib.h>

#define LOOKS 64      /* between two looks at the clock */
#define LOOK_FOR_NS 500
#define ADDRESS_BITS 48 /* of a number; above them, how often the memory was used before */

static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
static hbm_operation *kept;
static _Atomic(hbm_operation *) handy; /* one more, without the lock */

static hbm_operation *take(void)
{
    hbm_operation *o = atomic_exchange_explicit(&handy, NULL, memory_order_acquire);
    if (o)
        return o;
    pthread_mutex_lock(&keeping);
    o = kept;
    if (o)
        kept = o->next;
    pthread_mutex_unlock(&keeping);
    return o ? o : calloc(1, sizeof *o);
}

static void give(hbm_operation *o)
{
    hbm_operation *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&handy, &none, o, memory_order_release,
                                                memory_order_relaxed))
        return;
    pthread_mutex_lock(&keeping);
    o->next = kept;
    kept = o;
    pthread_mutex_unlock(&keeping);
}

hbm_operation *hbm_new(hbm_comm *c, const hbm_call *call)
{
    hbm_operation *o = c ? take() : NULL;
    if (!o)
        return NULL;
    o->comm = c;
    o->call = *call;
    o->is_flying = 0;
    atomic_store_explicit(&o->request, 0, memory_order_relaxed);
    atomic_store_explicit(&o->references, 1, memory_order_relaxed);
    atomic_store_explicit(&o->status, HBM_OK, memory_order_relaxed);
    atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
    return o;
}

void hbm_drop(hbm_operation *o)
{
    if (!o || atomic_fetch_sub_explicit(&o->references, 1, memory_order_acq_rel) > 1)
        return;
    hbm_release(o->comm);
    give(o);
}

/* Ranks that start together complete a short operation sooner than it takes to make a request of it
   and to complete that: for about that time this looks whether they do. */
static int looks_in_vain(const hbm_comm *c)
{
    if (c->oversubscribed)
        return 1;
    uint64_t end = hbm_now_ns() + LOOK_FOR_NS;
    do {
        for (int i = 0; i < LOOKS; i++)
            if (atomic_load_explicit(c->awaiting.value, memory_order_acquire) >= c->awaiting.target)
                return 0;
    } while (hbm_now_ns() < end);
    return 1;
}

int hbm_start(hbm_operation *o, uintptr_t request)
{
    hbm_comm *c = o->comm;
    int status = hbm_enter_start(c);
    if (status)
        return status;
    hbm_take_back_request(request); /* of a plan that nobody waited for */
    o->is_flying = 0;
    status = hbm_prepare(o);
    if (!status) {
        hbm_append(o);
        do
            hbm_progress(c);
        while (c->head == o && o->block <= c->tuning.eager_bytes && !looks_in_vain(c));
        status = atomic_load_explicit(&o->status, memory_order_relaxed);
        if (status == HBM_PENDING) {
            hbm_let_fly(o);
            hbm_begin_request(o, request);
        } else if (status == HBM_OK) {
            hbm_complete_request(request);
        }
    }
    hbm_leave_wait(c);
    if (status == HBM_PENDING)
        hbm_watch();
    return status;
}

static int status_of(const hbm_operation *o)
{
    return atomic_load_explicit(&o->status, memory_order_acquire);
}

int hbm_test(hbm_operation *o, uintptr_t request)
{
    if (!o)
        return HBM_OK;
    if (status_of(o) == HBM_PENDING)
        hbm_progress_others(NULL);
    if (status_of(o) == HBM_PENDING)
        hbm_progress_mpi(); /* the others may wait for what MPI does */
    if (status_of(o) != HBM_PENDING)
        hbm_free_request(o, request);
    return status_of(o);
}

int hbm_wait(hbm_operation *o, uintptr_t request)
{
    if (!o)
        return HBM_OK;
    int status = status_of(o);
    if (status == HBM_PENDING) {
        status = hbm_enter_wait(o->comm);
        if (status)
            return status;
        status = hbm_complete(o);
        hbm_leave_wait(o->comm);
    }
    if (status != HBM_PENDING)
        hbm_free_request(o, request);
    return status;
}

/* ---- started once ---- */

uint64_t hbm_start_once(hbm_comm *c, const hbm_call *call, uintptr_t request)
{
    hbm_operation *o = !call || (request && !hbm_serves_requests()) ? NULL : hbm_new(c, call);
    if (!o)
        return HBM_UNREADABLE;
    int status = hbm_start(o, request);
    if (status == HBM_PENDING)
        return (uint64_t)(uintptr_t)o
               | (uint64_t)atomic_load_explicit(&o->uses, memory_order_relaxed) << ADDRESS_BITS;
    hbm_drop(o);
    return (uint64_t)status;
}

uint64_t hbm_start_plan(uintptr_t plan, uintptr_t request)
{
    const hbm_plan *p = (const hbm_plan *)plan;
    return p ? hbm_start_once(p->comm, p->call, request) : HBM_UNREADABLE;
}

/* NULL where it was complete, and its status was returned. */
static hbm_operation *numbered(uint64_t number)
{
    hbm_operation *o = (hbm_operation *)(uintptr_t)(number & ((UINT64_C(1) << ADDRESS_BITS) - 1));
    return o && atomic_load_explicit(&o->uses, memory_order_relaxed) == number >> ADDRESS_BITS ? o : NULL;
}

void hbm_drop_once(uint64_t operation)
{
    hbm_operation *o = numbered(operation);
    if (!o)
        return;
    atomic_fetch_add_explicit(&o->uses, 1, memory_order_relaxed);
    hbm_drop(o);
}

int hbm_test_once(uint64_t operation, uintptr_t request)
{
    int status = hbm_test(numbered(operation), request);
    if (!status)
        hbm_drop_once(operation);
    return status;
}

int hbm_wait_once(uint64_t operation, uintptr_t request)
{
    int status = hbm_wait(numbered(operation), request);
    if (!status)
        hbm_drop_once(operation);
    return status;
}
