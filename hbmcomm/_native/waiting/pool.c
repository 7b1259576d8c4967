/* Operations that outlive the call that makes them: hbm_new() and hbm_drop() count references.

   An operation in flight has references from its owner, from its queue and from MPI's request; the
   last of them frees it. Its memory goes to a pool and never back to libc: a caller that was
   interrupted may ask for an operation again, and the number of uses in it must then still show
   that the operation is gone. Its number is the index of its memory and that number of uses.

   Ordering: a mutex guards the pool. The one operation outside it is exchanged with acquire and
   release, and so is the last reference. A chunk of memory is stored with release before any index
   in it is handed out. A fork takes the mutex first, so that the child finds it free. */
#include "waiting/pool.h"

#include <pthread.h>
#include <stdlib.h>

#define INDEX_BITS 24
#define FIRST 64u  /* operations in chunk 0; each chunk has twice as many as the one before */
#define CHUNKS (INDEX_BITS - 6)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static hbm_operation *pool;
static _Atomic(hbm_operation *) handy; /* one more, taken and returned without the lock */
static _Atomic(hbm_operation *) chunks[CHUNKS];
static int chunk_count;

static uint64_t first_of(int chunk) { return FIRST * ((UINT64_C(1) << chunk) - 1); }

/* Adds a chunk to the pool, which is locked. */
static void grow(void)
{
    uint64_t first = first_of(chunk_count), n = first_of(chunk_count + 1) - first;
    hbm_operation *all = chunk_count < CHUNKS ? calloc(n, sizeof *all) : NULL;
    if (!all)
        return;
    for (uint64_t i = n; i-- > 0; pool = &all[i]) {
        all[i].index = first + i;
        all[i].next = pool;
    }
    atomic_store_explicit(&chunks[chunk_count++], all, memory_order_release);
}

static void lock_pool(void) { pthread_mutex_lock(&lock); }

static void unlock_pool(void) { pthread_mutex_unlock(&lock); }

static void watch_forks(void) { pthread_atfork(lock_pool, unlock_pool, unlock_pool); }

static hbm_operation *take_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    hbm_operation *o = atomic_exchange_explicit(&handy, NULL, memory_order_acquire);
    if (o)
        return o;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    if (!pool)
        grow();
    o = pool;
    if (o)
        pool = o->next;
    pthread_mutex_unlock(&lock);
    return o;
}

uint64_t hbm_number_of(const hbm_operation *o)
{
    uint64_t uses = atomic_load_explicit(&o->uses, memory_order_relaxed);
    return uses << INDEX_BITS | (o->index + HBM_LAST_STATUS + 1);
}

hbm_operation *hbm_numbered(uint64_t number)
{
    uint64_t index = (number & ((UINT64_C(1) << INDEX_BITS) - 1)) - (HBM_LAST_STATUS + 1);
    int chunk = 0;
    if (number <= HBM_LAST_STATUS)
        return NULL;
    while (chunk < CHUNKS - 1 && index >= first_of(chunk + 1))
        chunk++;
    hbm_operation *all = atomic_load_explicit(&chunks[chunk], memory_order_acquire);
    hbm_operation *o = all && index < first_of(chunk + 1) ? all + (index - first_of(chunk)) : NULL;
    return o && atomic_load_explicit(&o->uses, memory_order_relaxed) == number >> INDEX_BITS ? o
                                                                                          : NULL;
}

hbm_operation *hbm_retire(uint64_t number)
{
    hbm_operation *o = hbm_numbered(number);
    uint64_t uses = number >> INDEX_BITS;
    return o && atomic_compare_exchange_strong_explicit(&o->uses, &uses, uses + 1,
                                                        memory_order_relaxed, memory_order_relaxed)
               ? o
               : NULL;
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
