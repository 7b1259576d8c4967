/* Operations that outlive the call that makes them: hbm_new() and hbm_drop() count references.

   An operation in flight has references from its owner, from its queue and from MPI's request; the
   last of them frees it. Its memory goes to a pool and never back to libc: a caller that was
   interrupted may ask for an operation again, and the number of uses in it must then still show
   that the operation is gone. Its number is the index of its memory and that number of uses.

   Ordering: a mutex guards the pool. The one operation outside it is exchanged with acquire and
   release, and so is the last reference. A chunk of memory is stored with release before any index
   in it is handed out. A fork takes the mutex first, so that the child finds it free. */
#include "comm/mpi_table.h"
#include "comm/requests.h"

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

/* Generalized requests: with these MPI waits for our operations together with its own.

   Ordering: the handle is stored with release and loaded with acquire, because a thread other than
   the one that started an operation may complete it. A thread that queries a request loads `status`
   with acquire, and so sees the results. A mutex guards the list of requests that another thread
   must end; a thread looks at the count first, and one that it misses is ended at the next poll. A
   handle is put in the stock with release and taken with acquire. */
#define STATUS_BYTES 256 /* more than any MPI_Status has */
#define STOCK 8
#define FREED UINT64_MAX /* in the place of a handle that MPI has freed */

typedef int (*query)(void *extra, void *status);
typedef int (*release)(void *extra);
typedef int (*cancel)(void *extra, int complete);
typedef int (*grequest_start)(query, release, cancel, void *extra, void *request);
typedef int (*grequest_complete)(uint64_t request);
typedef int (*wait_for)(void *request, void *status);
typedef int (*set_elements)(void *status, uint64_t type, int count);
typedef int (*set_cancelled)(void *status, int flag);

static int query_operation(void *extra, void *status)
{
    const hbm_operation *o = extra; /* NULL: the request was made complete */
    ((set_elements)hbm_mpi_table.status_set_elements)(status, hbm_mpi_table.byte, 0);
    ((set_cancelled)hbm_mpi_table.status_set_cancelled)(status, 0);
    int is_ok = !o || atomic_load_explicit(&o->status, memory_order_acquire) == HBM_OK;
    return is_ok ? 0 : hbm_mpi_table.error;
}

/* MPI has freed its handle. */
static int release_operation(void *extra)
{
    hbm_operation *o = extra;
    if (o) {
        atomic_store_explicit(&o->request, FREED, memory_order_release);
        hbm_drop(o);
    }
    return 0;
}

static int refuse_to_cancel(void *extra, int complete)
{
    (void)extra;
    return complete ? 0 : hbm_mpi_table.error;
}

static int start_request(hbm_operation *o, void *handle)
{
    grequest_start begin = (grequest_start)hbm_mpi_table.grequest_start;
    return begin(query_operation, release_operation, refuse_to_cancel, o, handle);
}

/* The address of MPI's handle in a request object of mpi4py. */
static void *handle_in(uintptr_t request) { return (void *)(request + hbm_mpi_table.handle_at); }

void hbm_begin_request(hbm_operation *o, uintptr_t request)
{
    uint64_t handle = 0;
    if (!request || !hbm_may_call_mpi())
        return;
    atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
    if (start_request(o, handle_in(request)) != 0) {
        hbm_drop(o);
        return;
    }
    memcpy(&handle, handle_in(request), (size_t)hbm_mpi_table.handle_bytes);
    atomic_store_explicit(&o->request, handle, memory_order_release);
}

/* 0: it has no request, or none any more. */
static uint64_t handle_of(const hbm_operation *o)
{
    uint64_t handle = atomic_load_explicit(&o->request, memory_order_acquire);
    return handle == FREED ? 0 : handle;
}

int hbm_is_over(uint64_t operation)
{
    const hbm_operation *o = hbm_numbered(operation);
    return !o || atomic_load_explicit(&o->request, memory_order_acquire) == FREED;
}

static void end_now(const hbm_operation *o)
{
    uint64_t handle = handle_of(o);
    if (handle)
        ((grequest_complete)hbm_mpi_table.grequest_complete)(handle);
}

/* Operations that are complete and have a reference for their place in this list. */
static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
static hbm_operation *unended;
static _Atomic int unended_count;

static void end_later(hbm_operation *o)
{
    pthread_mutex_lock(&ending);
    if (!o->is_unended) {
        o->is_unended = 1;
        atomic_fetch_add_explicit(&o->references, 1, memory_order_relaxed);
        o->next_unended = unended;
        unended = o;
        atomic_fetch_add_explicit(&unended_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&ending);
}

static hbm_operation *take_unended(void)
{
    pthread_mutex_lock(&ending);
    hbm_operation *o = unended;
    if (o) {
        unended = o->next_unended;
        o->is_unended = 0;
        atomic_fetch_sub_explicit(&unended_count, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&ending);
    return o;
}

void hbm_end_request(hbm_operation *o)
{
    if (!handle_of(o) || !hbm_has_mpi())
        return;
    if (hbm_is_mpi_thread())
        end_now(o);
    else
        end_later(o);
}

void hbm_end_requests(void)
{
    if (!atomic_load_explicit(&unended_count, memory_order_relaxed) || !hbm_is_mpi_thread())
        return;
    for (hbm_operation *o; (o = take_unended());) {
        end_now(o);
        hbm_drop(o);
    }
}

void hbm_free_request(hbm_operation *o, uintptr_t request)
{
    _Alignas(16) char status[STATUS_BYTES];
    uint64_t handle = handle_of(o);
    if (handle && hbm_may_call_mpi())
        ((wait_for)hbm_mpi_table.wait)(request ? handle_in(request) : &handle, status);
}

/* An operation that was complete as soon as it was started has a request too, because MPI's Waitany
   and Waitsome must report it. To make and free a request takes as long as such an operation, so
   there is a stock of complete ones. */
static _Atomic uint64_t stock[STOCK]; /* 0: none */

static uint64_t take_from_stock(void)
{
    for (int i = 0; i < STOCK; i++)
        if (atomic_load_explicit(&stock[i], memory_order_relaxed)) {
            uint64_t handle = atomic_exchange_explicit(&stock[i], 0, memory_order_acquire);
            if (handle)
                return handle;
        }
    return 0;
}

static int put_in_stock(uint64_t handle)
{
    for (int i = 0; i < STOCK; i++) {
        uint64_t none = 0;
        if (!atomic_load_explicit(&stock[i], memory_order_relaxed)
            && atomic_compare_exchange_strong_explicit(&stock[i], &none, handle,
                                                       memory_order_release, memory_order_relaxed))
            return 1;
    }
    return 0;
}

void hbm_complete_request(uintptr_t request)
{
    if (!request || !hbm_may_call_mpi())
        return;
    uint64_t handle = take_from_stock();
    if (!handle) {
        if (start_request(NULL, &handle) != 0)
            return;
        ((grequest_complete)hbm_mpi_table.grequest_complete)(handle);
    }
    memcpy(handle_in(request), &handle, (size_t)hbm_mpi_table.handle_bytes);
}

void hbm_take_back_request(uintptr_t request)
{
    _Alignas(16) char status[STATUS_BYTES];
    uint64_t handle = 0;
    if (!request || !hbm_may_call_mpi())
        return;
    memcpy(&handle, handle_in(request), (size_t)hbm_mpi_table.handle_bytes);
    if (handle == hbm_mpi_table.null_request)
        return;
    if (put_in_stock(handle))
        memcpy(handle_in(request), &hbm_mpi_table.null_request,
               (size_t)hbm_mpi_table.handle_bytes);
    else
        ((wait_for)hbm_mpi_table.wait)(handle_in(request), status);
}

void hbm_free_stock(void)
{
    _Alignas(16) char status[STATUS_BYTES];
    for (uint64_t handle; hbm_may_call_mpi() && (handle = take_from_stock());)
        ((wait_for)hbm_mpi_table.wait)(&handle, status);
}
