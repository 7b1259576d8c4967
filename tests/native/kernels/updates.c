/* Steps of a parameter server: threads are workers and owners, and every worker computes the
   weights serially as well. Both must have the same bits. */
#include "core_test.h"
#include "update.h"

#include <math.h>

#define AREA (256ul * 1024)          /* bytes of each array in a rank's memory */
#define MOST_FLOATS (AREA / sizeof(float))
#define MOST_KEYS 12
#define MOST_CHUNKS 200
#define STEPS 4
#define LENGTHS 70                   /* floats: several vectors and a remainder */

enum { GRADIENTS, WEIGHTS, READY, DONE, FIRST, SECOND, SUMS };
enum { WRITTEN, PULLED, SHARED };    /* how workers get their weights */

typedef struct {
    int owners;                      /* ranks that own chunks and are no workers; 0: all are both */
    int delivery, separate;
    uint64_t keys, chunk_count, floats;
    ps_chunk chunks[MOST_CHUNKS];
    int owner[MOST_CHUNKS];
    ps_optimizer optimizer;
} job;

typedef struct {
    float *weights, *first, *second;
} model;

static float fraction(uint64_t value) { return (float)(mixed(value) >> 40) / 8388608.0f - 1.0f; }

static ps_optimizer draw_optimizer(dice *d)
{
    return (ps_optimizer){.code = (int32_t)roll(d, PS_OPTIMIZERS),
                           .scale = 1.0f / 3, .rate = 0.1f, .keep = roll(d, 2) ? 1.0f : 0.999f,
                           .decay1 = 0.9f, .rest1 = 0.1f, .decay2 = 0.99f, .rest2 = 0.01f,
                           .root = 1.5f, .epsilon = 1e-8f};
}

/* One weight, by the formulas of the optimisers. */
static void advance_one(const ps_optimizer *h, float sum, float *w, float *m, float *v)
{
    float g = sum * h->scale;
    switch (h->code) {
    case PS_SGD:
        *w = *w - h->rate * g;
        break;
    case PS_MOMENTUM:
        *m = h->decay1 * *m + g;
        *w = *w - h->rate * *m;
        break;
    case PS_NESTEROV:
        *m = h->decay1 * *m + g;
        *w = *w - h->rate * (g + h->decay1 * *m);
        break;
    default:
        *m = h->decay1 * *m + h->rest1 * g;
        *v = h->decay2 * *v + h->rest2 * (g * g);
        *w = *w * h->keep - h->rate * (*m / (sqrtf(*v) * h->root + h->epsilon));
    }
}

/* ---- the kernels alone ---- */

static void check_kernel(dice *d, uint64_t n, uint64_t shift, int pair)
{
    float a[LENGTHS + 8], b[LENGTHS + 8], updated[3][LENGTHS + 8], expected[3][LENGTHS + 8];
    ps_optimizer h = draw_optimizer(d);
    for (uint64_t i = 0; i < LENGTHS + 8; i++) {
        a[i] = fraction(d->state++);
        b[i] = fraction(d->state++);
        for (int k = 0; k < 3; k++)
            updated[k][i] = expected[k][i] = fabsf(fraction(d->state++));
    }
    for (uint64_t i = shift; i < shift + n; i++)
        advance_one(&h, pair ? a[i] + b[i] : a[i], &expected[0][i], &expected[1][i],
                    &expected[2][i]);
    const void *gradients[] = {a + shift, b + shift};
    ps_optimize(&h, gradients, pair ? 2 : 1, NULL, updated[0] + shift, updated[1] + shift,
                updated[2] + shift, n);
    CHECK(!memcmp(updated, expected, sizeof updated), "optimiser %d of %llu floats from %llu",
          h.code, (unsigned long long)n, (unsigned long long)shift);
}

void test_optimizers(uint64_t seed, UNUSED double seconds)
{
    dice d = {seed};
    for (uint64_t n = 0; n <= LENGTHS; n++)
        for (uint64_t shift = 0; shift < 8; shift++)
            for (int pair = 0; pair < 2; pair++)
                check_kernel(&d, n, shift, pair);
}

/* ---- steps ---- */

static job draw_job(dice *d, int size)
{
    job j = {.owners = roll(d, 2) && size > 1 ? 1 + (int)roll(d, (uint64_t)size - 1) : 0,
             .delivery = (int)roll(d, 3), .separate = (int)roll(d, 2),
             .keys = 1 + roll(d, MOST_KEYS), .optimizer = draw_optimizer(d)};
    uint64_t states[MOST_RANKS] = {0}, at = 0, most = 64 * (1 + roll(d, 64));
    for (uint64_t key = 0; key < j.keys; key++) {
        uint64_t left = 4 * (1 + roll(d, 4000));
        for (uint64_t bytes; left && j.chunk_count < MOST_CHUNKS; left -= bytes) {
            bytes = left < most ? left : most;
            int owner = (int)roll(d, (uint64_t)(j.owners ? j.owners : size));
            j.owner[j.chunk_count] = owner;
            j.chunks[j.chunk_count++] = (ps_chunk){key, at, bytes, states[owner], 0};
            states[owner] += (bytes + LINE - 1) / LINE * LINE;
            at += (bytes + LINE - 1) / LINE * LINE;
        }
    }
    j.floats = at / sizeof(float);
    CHECK(j.floats <= MOST_FLOATS, "no room for the weights");
    return j;
}

static uintptr_t area(const member *me, int rank, int which)
{
    return (uintptr_t)me->comm->peers[rank].arrays + (uint64_t)which * AREA;
}

static int works(const member *me, const job *j) { return me->rank >= j->owners; }

/* Where an owner reads and updates the weights. */
static uintptr_t master_of(const member *me, const job *j, int owner)
{
    int at = j->delivery == SHARED ? me->g.size - 1 : owner; /* the last rank is a worker */
    return area(me, at, WEIGHTS);
}

typedef struct {
    ps_step step;
    ps_worker workers[MOST_RANKS];
    const void *gradients[MOST_RANKS];
    ps_chunk chunks[MOST_CHUNKS];
    ps_copy pulls[MOST_CHUNKS];
    uint64_t pull_count;
} part;

static void describe_part(const member *me, const job *j, part *p)
{
    p->step = (ps_step){.optimizer = j->optimizer, .workers = p->workers,
                        .gradients = p->gradients, .chunks = p->chunks,
                        .separate = j->separate, .streaming = (int)(j->floats & 1),
                        .first = area(me, me->rank, FIRST), .second = area(me, me->rank, SECOND),
                        .sums = area(me, me->rank, SUMS)};
    ps_step *s = &p->step;
    for (int r = j->owners; r < me->g.size; r++)
        p->workers[s->worker_count++] = (ps_worker){
            area(me, r, GRADIENTS),
            j->delivery == WRITTEN && r != me->rank ? area(me, r, WEIGHTS) : 0,
            area(me, r, READY)};
    for (uint64_t i = 0; i < j->chunk_count; i++) {
        const ps_chunk *c = &j->chunks[i];
        if (j->owner[i] == me->rank) {
            p->chunks[s->chunk_count] = *c;
            p->chunks[s->chunk_count++].master = master_of(me, j, me->rank) + c->offset;
        } else if (works(me, j) && j->delivery == PULLED)
            p->pulls[p->pull_count++] = (ps_copy){master_of(me, j, j->owner[i]) + c->offset,
                                                  area(me, me->rank, WEIGHTS) + c->offset,
                                                  c->bytes};
    }
}

static float gradient(uint64_t step, int rank, uint64_t i)
{
    return fraction(step << 40 ^ (uint64_t)rank << 32 ^ i);
}

static void compute_gradients(const member *me, const job *j, uint64_t key, uint64_t step)
{
    float *to = (float *)area(me, me->rank, GRADIENTS);
    for (uint64_t c = 0; c < j->chunk_count; c++)
        for (uint64_t k = 0; j->chunks[c].key == key && k < j->chunks[c].bytes / sizeof *to; k++) {
            uint64_t i = j->chunks[c].offset / sizeof *to + k;
            to[i] = gradient(step, me->rank, i);
        }
}

static void advance_serially(const member *me, const job *j, model *m, uint64_t step)
{
    for (uint64_t c = 0; c < j->chunk_count; c++)
        for (uint64_t k = 0; k < j->chunks[c].bytes / sizeof(float); k++) {
            uint64_t i = j->chunks[c].offset / sizeof(float) + k;
            float sum = gradient(step, j->owners, i);
            for (int r = j->owners + 1; r < me->g.size; r++)
                sum = sum + gradient(step, r, i);
            advance_one(&j->optimizer, sum, &m->weights[i], &m->first[i], &m->second[i]);
        }
}

static void raise_flags(const member *me, int which, uint64_t first, uint64_t count, uint64_t step)
{
    uintptr_t flags = area(me, me->rank, which) + first * sizeof(uint64_t);
    CHECK(hbm_raise_flags(me->comm, flags, count, step) == HBM_OK, "flags were not raised");
}

static void await_flag(const member *me, int rank, int which, uint64_t number, uint64_t step)
{
    uintptr_t flag = area(me, rank, which) + number * sizeof(uint64_t);
    CHECK(hbm_await_flag(me->comm, rank, flag, step) == HBM_OK, "flag of rank %d failed", rank);
}

static void one_step(const member *me, const job *j, part *p, int overlap)
{
    ps_step *s = &p->step;
    uint64_t next = 0;
    s->step++;
    for (uint64_t key = works(me, j) ? j->keys : 0; key--;) {
        compute_gradients(me, j, key, s->step);
        if (overlap) {
            raise_flags(me, READY, key, 1, s->step);
            next = ps_update(s, next);
        }
    }
    if (!overlap && works(me, j))
        raise_flags(me, READY, 0, j->keys, s->step);
    while ((next = ps_update(s, next)) < s->chunk_count)
        for (int r = j->owners; r < me->g.size; r++)
            await_flag(me, r, READY, s->chunks[next].key, s->step);
    raise_flags(me, DONE, 0, 1, s->step);
    for (int r = 0; r < me->g.size; r++)
        await_flag(me, r, DONE, 0, s->step);
    ps_pull(p->pulls, p->pull_count, s->streaming);
}

static void body_updates(member *me)
{
    const job *j = me->shared;
    part *p = calloc(1, sizeof *p);
    float *memory = calloc(3, AREA);
    CHECK(p && memory, "no memory");
    model m = {memory, memory + MOST_FLOATS, memory + 2 * MOST_FLOATS};
    memset(me->heap, 0, (SUMS + 1) * AREA);
    describe_part(me, j, p);
    hbm_call barrier = {.operation = HBM_BARRIER};
    CHECK(hbm_run(me->comm, &barrier) == HBM_OK, "the barrier failed");
    for (uint64_t step = 1; step <= STEPS; step++) {
        one_step(me, j, p, (int)(mixed(step ^ j->floats) & 1));
        advance_serially(me, j, &m, step);
        int at = j->delivery == SHARED ? me->g.size - 1 : me->rank;
        CHECK(!works(me, j)
                  || !memcmp((void *)area(me, at, WEIGHTS), m.weights, j->floats * sizeof(float)),
              "rank %d of %d, step %d: other weights than the serial optimiser", me->rank,
              me->g.size, (int)step);
    }
    CHECK(hbm_run(me->comm, &barrier) == HBM_OK, "the barrier failed");
    free(memory);
    free(p);
}

void test_updates(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    dice d = {seed};
    for (int round = 0; round < 12 || seconds_now() < end; round++) {
        group g = {.size = 1 + (int)roll(&d, FEW_RANKS), .oversubscribed = round & 1,
                   .cache_bytes = roll(&d, 2) ? 0 : 1 << 30,
                   .machine = roll(&d, 2) ? odd_and_even : NULL};
        job j = draw_job(&d, g.size);
        as_ranks(g, body_updates, &j);
    }
}
