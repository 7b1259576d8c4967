/* One loop for each optimiser; it also adds the last two partial gradients.

   Every operation rounds once, in the order that it is written in: the core is compiled without
   contraction of a * b + c, and IEEE 754 defines division and square root. So the weights have the
   same bits for every vector length, and those of NumPy (optimizers.py has the same formulas).
   It works on memory that no other rank writes at that time, so it needs no ordering. */
#include "kernels/optimizers.h"

#include <stddef.h>

#include "kernels/vector.h"

#define EACH _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)

/* `g` is the scaled gradient; `w`, `m` and `v` are weights and state. */
#define OPTIMIZER(name, formula)                                                         \
    HBM_VECTOR static void name(const hbm_optimizer *how, const float *a, const float *b, \
                                float *w, float *m, float *v, uint64_t n)                \
    {                                                                                    \
        const hbm_optimizer h = *how;                                                    \
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

typedef void (*optimizer)(const hbm_optimizer *how, const float *a, const float *b, float *w,
                          float *m, float *v, uint64_t n);

static const optimizer optimizers[HBM_OPTIMIZERS] = {
    [HBM_SGD] = sgd, [HBM_MOMENTUM] = momentum, [HBM_NESTEROV] = nesterov, [HBM_ADAM] = adam,
};

void hbm_optimize_sum(const hbm_optimizer *how, const float *a, const float *b, float *weights,
                      float *first, float *second, uint64_t n)
{
    optimizers[how->code](how, a, b, weights, first, second, n);
}

void hbm_optimize(const hbm_optimizer *how, const float *gradient, float *weights, float *first,
                  float *second, uint64_t n)
{
    hbm_optimize_sum(how, gradient, NULL, weights, first, second, n);
}
