/* A step of a parameter server: an owner adds the gradients of its chunks, optimises a chunk while
   its sum is in the cache, and writes the new weights to all workers. No chunk has two owners, so
   there are no locks.

   Ordering: a worker raises the flag of a key, with release, after it has written the gradient; an
   owner loads it with acquire before it reads the gradient or writes weights of the worker. Streaming
   stores end before ps_update() returns. The caller raises a flag when all chunks are done, and all
   ranks wait for it before they read weights or write gradients of the next step.

   Every operation rounds once, in the order that it is written in: the core is compiled without
   contraction of a * b + c, and IEEE 754 defines division and square root. So the weights have the
   same bits for every vector length, and those of NumPy (optimizers.py has the same formulas). */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "update.h"

#include "kernels/copy.h"
#include "kernels/vector.h"

#define EACH _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)

/* `g` is the scaled gradient; `w`, `m` and `v` are weights and state. The last gradient is `b`, or
   NULL where there is one. */
#define OPTIMIZER(name, formula)                                                         \
    HBM_VECTOR static void name(const ps_optimizer *how, const float *a, const float *b, \
                                float *w, float *m, float *v, uint64_t n)                \
    {                                                                                    \
        const ps_optimizer h = *how;                                                     \
        (void)m, (void)v;                                                                \
        if (b)                                                                           \
            EACH { const float g = (a[i] + b[i]) * h.scale; formula }                    \
        else                                                                             \
            EACH { const float g = a[i] * h.scale; formula }                             \
    }

OPTIMIZER(sgd, w[i] = w[i] - h.rate * g;)
OPTIMIZER(momentum, m[i] = h.decay1 * m[i] + g;
                    w[i] = w[i] - h.rate * m[i];)
OPTIMIZER(nesterov, m[i] = h.decay1 * m[i] + g;
                    w[i] = w[i] - h.rate * (g + h.decay1 * m[i]);)
/* `keep` is 1 without decay of weights: multiplication by 1 is exact */
OPTIMIZER(adam, m[i] = h.decay1 * m[i] + h.rest1 * g;
                v[i] = h.decay2 * v[i] + h.rest2 * (g * g);
                w[i] = w[i] * h.keep
                       - h.rate * (m[i] / (__builtin_sqrtf(v[i]) * h.root + h.epsilon));)

typedef void (*optimizer)(const ps_optimizer *how, const float *a, const float *b, float *w,
                          float *m, float *v, uint64_t n);

static const optimizer optimizers[PS_OPTIMIZERS] = {
    [PS_SGD] = sgd, [PS_MOMENTUM] = momentum, [PS_NESTEROV] = nesterov, [PS_ADAM] = adam,
};

static void add(const void *const *gradients, uint64_t count, void *sum, uint64_t n)
{
    const hbm_call call = {.dtype = HBM_FLOAT32, .reduction = HBM_SUM, .count = n};
    hbm_fold(&call, gradients, (int)count, sum);
}

/* The optimiser adds the last gradient itself; a pair of gradients needs no room. */
void ps_optimize(const ps_optimizer *how, const void *const *gradients, uint64_t count, float *sum,
                 float *weights, float *first, float *second, uint64_t n)
{
    const float *a = gradients[0], *b = count > 1 ? gradients[count - 1] : NULL;
    if (count > 2) {
        add(gradients, count - 1, sum, n);
        a = sum;
    }
    optimizers[how->code](how, a, b, weights, first, second, n);
}

static void copy_to(uintptr_t to, uintptr_t from, uint64_t bytes, int streaming)
{
    (streaming ? hbm_stream : hbm_copy)((void *)to, (const void *)from, bytes);
}

static int is_complete(const ps_step *s, uint64_t key)
{
    for (uint64_t i = 0; i < s->worker_count; i++)
        if (atomic_load_explicit((const _Atomic uint64_t *)s->workers[i].ready + key,
                                 memory_order_acquire) < s->step)
            return 0;
    return 1;
}

static void find_gradients(const ps_step *s, const ps_chunk *chunk, const void **gradients)
{
    for (uint64_t i = 0; i < s->worker_count; i++)
        gradients[i] = (const void *)(s->workers[i].gradients + chunk->offset);
}

/* `count` 1: the gradients are a sum already. */
static void update(const ps_step *s, const ps_chunk *chunk, const void *const *gradients,
                   uint64_t count)
{
    float *first = s->first ? (float *)(s->first + chunk->state) : NULL;
    float *second = s->second ? (float *)(s->second + chunk->state) : NULL;
    ps_optimize(&s->optimizer, gradients, count, (float *)s->sums, (float *)chunk->master, first,
                second, chunk->bytes / sizeof(float));
    for (uint64_t i = 0; i < s->worker_count; i++)
        if (s->workers[i].weights)
            copy_to(s->workers[i].weights + chunk->offset, chunk->master, chunk->bytes,
                    s->streaming);
}

/* Adds a chunk; after the last chunk of a key, optimises all of them. */
static void update_separately(const ps_step *s, uint64_t number, const void *const *gradients)
{
    const ps_chunk *chunk = &s->chunks[number];
    add(gradients, s->worker_count, (void *)(s->sums + chunk->state),
        chunk->bytes / sizeof(float));
    if (number + 1 < s->chunk_count && s->chunks[number + 1].key == chunk->key)
        return;
    while (number && s->chunks[number - 1].key == chunk->key)
        number--;
    for (const ps_chunk *key_chunk = &s->chunks[number]; key_chunk <= chunk; key_chunk++) {
        const void *sum = (const void *)(s->sums + key_chunk->state);
        update(s, key_chunk, &sum, 1);
    }
}

uint64_t ps_update(const ps_step *s, uint64_t from)
{
    const void **gradients = s->gradients;
    for (; from < s->chunk_count && is_complete(s, s->chunks[from].key); from++) {
        find_gradients(s, &s->chunks[from], gradients);
        if (s->separate)
            update_separately(s, from, gradients);
        else
            update(s, &s->chunks[from], gradients, s->worker_count);
    }
    hbm_stream_end();
    return from;
}

void ps_pull(const ps_copy *copies, uint64_t count, int streaming)
{
    for (uint64_t i = 0; i < count; i++)
        copy_to(copies[i].to, copies[i].from, copies[i].bytes, streaming);
    hbm_stream_end();
}
