/* Optimisers: new weights from gradients, for a range of floats. */
#ifndef HBMCOMM_OPTIMIZERS_H
#define HBMCOMM_OPTIMIZERS_H

#include "api.h"

/* The gradient is a[i] + b[i], or a[i] where `b` is NULL. Arrays do not overlap. */
void hbm_optimize_sum(const hbm_optimizer *how, const float *a, const float *b, float *weights,
                      float *first, float *second, uint64_t n);

#endif
