/* Operations that outlive the call that makes them: hbm_new() and hbm_drop() count references.

   An operation in flight has references from its owner, from its queue and from MPI's request; the
   last of them frees it. Its memory goes to a pool and never back to libc: a caller that was
   interrupted may ask for an operation again, and the number of uses in it must then still show
   that the operation is gone.

   Ordering: a mutex guards the pool. The one operation outside it is exchanged with acquire and
   release, and so is the last reference. */
#include "communicator/comm.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hbm_operation *pool;
static _Atomic(hbm_operation *) handy; /* one more, taken and returned without the lock */

static hbm_operation *take_memory(void)
{
    hbm_operation *o = atomic_exchange_explicit(&handy, NULL, memory_order_acquire);
    if (o)
        return o;
    pthread_mutex_lock(&lock);
    o = pool;
    if (o)
        pool = o->next;
    pthread_mutex_unlock(&lock);
    return o ? o : calloc(1, sizeof *o);
}

static void return_memory(hbm_operation *o)
{
    hbm_operation *none = NULL;
    if (atomic_compare_exchange_strong_explicit(&handy, &none, o, memory_order_release,
                                                memory_order_relaxed))
        return;
    pthread_mutex_lock(&lock);
    o->next = pool;
    pool = o;
    pthread_mutex_unlock(&lock);
}

hbm_operation *hbm_new(hbm_comm *c, const hbm_call *call)
{
    hbm_operation *o = c ? take_memory() : NULL;
    if (!o)
        return NULL;
    o->comm = c;
    o->call = *call;
    o->is_in_flight = 0;
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
    return_memory(o);
}
