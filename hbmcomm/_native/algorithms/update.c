/* A step of a parameter server: each owner adds the gradients of its chunks, optimises a chunk
   while its sum is in the cache, and writes the new weights to all workers. No chunk has two
   owners, so there are no locks.

   Ordering: a worker stores the step in `ready` of a key with release, after it has written the
   gradient; owners load it with acquire before they read the gradient. Owners write into the
   weights of a worker between that load and hbm_sync(), which ends the step: after it the weights
   are visible to all, and no owner reads gradients of this step any more. A worker that copies the
   weights itself (`pulls`) does so after hbm_sync(); owners change them only after its next store
   in `ready`. Streaming stores end before hbm_sync(). */
#include "algorithms/update.h"

#include "algorithms/barrier.h"
#include "comm/lock.h"
#include "algorithms/rendezvous.h"
#include "kernels/optimizers.h"
#include "comm/posts.h"
#include "comm/progress.h"

enum { BEGINNING, UPDATING, MEETING };

static void copy_to(const hbm_operation *o, uintptr_t to, uintptr_t from, uint64_t bytes)
{
    (o->streaming ? hbm_stream : hbm_copy)((void *)to, (const void *)from, bytes);
}

/* Whether all workers have completed the gradient of a key; if not, the rank waits for one. */
static int is_complete(hbm_operation *o, uint64_t key)
{
    const hbm_update *u = o->call.update;
    for (; (uint64_t)o->peer < u->worker_count; o->peer++) {
        const hbm_worker *w = &u->workers[o->peer];
        awaited a = {w->rank, (const _Atomic uint64_t *)w->ready + key, u->step};
        if (!arrived(&a)) {
            o->comm->awaiting = a;
            return 0;
        }
    }
    o->peer = 0;
    return 1;
}

/* Points comm->in at a chunk of each worker's gradients. */
static int find_gradients(hbm_operation *o, const hbm_chunk *chunk)
{
    const hbm_update *u = o->call.update;
    for (uint64_t i = 0; i < u->worker_count; i++) {
        o->comm->in[i] = (const void *)(u->workers[i].gradients + chunk->offset);
        count_from(o->comm, u->workers[i].rank, chunk->bytes);
    }
    return (int)u->worker_count;
}

static void optimize(hbm_operation *o, const hbm_chunk *chunk, const float *a, const float *b)
{
    const hbm_update *u = o->call.update;
    float *first = u->first ? (float *)(u->first + chunk->state) : NULL;
    float *second = u->second ? (float *)(u->second + chunk->state) : NULL;
    hbm_optimize_sum(&u->optimizer, a, b, (float *)chunk->master, first, second,
                     chunk->bytes / sizeof(float));
    for (uint64_t i = 0; i < u->worker_count; i++)
        if (u->workers[i].weights) {
            copy_to(o, u->workers[i].weights + chunk->offset, chunk->master, chunk->bytes);
            count_to(o->comm, u->workers[i].rank, chunk->bytes);
        }
}

/* The optimiser adds the last gradient itself; a pair of gradients needs no room. */
static void update_fused(hbm_operation *o, const hbm_chunk *chunk)
{
    int ins = find_gradients(o, chunk);
    const void *const *in = o->comm->in;
    void *sum = (void *)o->call.update->sums;
    if (ins > 2)
        reduce_into(o, ins - 1, &sum, 1, 0, chunk->bytes, IN_ORDER);
    optimize(o, chunk, ins > 2 ? sum : in[0], ins > 1 ? in[ins - 1] : NULL);
}

/* Adds a chunk; after the last chunk of a key, optimises all of them. */
static void update_separately(hbm_operation *o, uint64_t number)
{
    const hbm_update *u = o->call.update;
    const hbm_chunk *chunk = &u->chunks[number];
    int ins = find_gradients(o, chunk);
    void *sum = (void *)(u->sums + chunk->state);
    reduce_into(o, ins, &sum, 1, 0, chunk->bytes, IN_ORDER);
    if (number + 1 < u->chunk_count && u->chunks[number + 1].key == chunk->key)
        return;
    while (number && u->chunks[number - 1].key == chunk->key)
        number--;
    for (const hbm_chunk *each = &u->chunks[number]; each <= chunk; each++)
        optimize(o, each, (const float *)(u->sums + each->state), NULL);
}

static int update_all(hbm_operation *o)
{
    const hbm_update *u = o->call.update;
    for (; o->piece < u->chunk_count; o->piece++) {
        const hbm_chunk *chunk = &u->chunks[o->piece];
        if (!is_complete(o, chunk->key))
            return HBM_PENDING;
        if (u->separate)
            update_separately(o, o->piece);
        else
            update_fused(o, chunk);
    }
    hbm_stream_end();
    return HBM_OK;
}

static void pull(hbm_operation *o)
{
    const hbm_update *u = o->call.update;
    for (uint64_t i = 0; i < u->pull_count; i++)
        copy_to(o, u->pulls[i].to, u->pulls[i].from, u->pulls[i].bytes);
    hbm_stream_end();
}

int hbm_update_path(hbm_operation *o)
{
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, READ_BY_NOBODY);
        if (status)
            return status;
        o->stage = UPDATING;
        /* fall through */
    case UPDATING:
        status = update_all(o);
        if (status)
            return status;
        o->stage = MEETING;
        /* fall through */
    default:
        status = hbm_sync(o, 1);
        if (!status)
            pull(o);
        return status;
    }
}

int hbm_push(hbm_comm *c, const hbm_update *u, uint64_t first, uint64_t count)
{
    int status = hbm_enter_start(c);
    if (status)
        return status;
    if (!c->failure.status) { /* after it was closed its memory may be another's */
        for (uint64_t key = first; key < first + count && key < u->keys; key++)
            atomic_store_explicit((_Atomic uint64_t *)u->ready + key, u->step,
                                  memory_order_release);
        c->ring_later = 1;
        hbm_progress(c);
    }
    status = c->failure.status;
    hbm_leave_wait(c);
    return status;
}
