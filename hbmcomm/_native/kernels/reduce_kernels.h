/* Reduce kernels: one loop for each dtype and reduction, for a few inputs at once. */
#ifndef HBMCOMM_REDUCE_KERNELS_H
#define HBMCOMM_REDUCE_KERNELS_H

#include <stdint.h>

#include "api.h"

#define KERNEL_INS 4 /* a kernel takes 2 to 4 inputs */

typedef void (*hbm_kernel)(void *out, const void *const *in, int ins, uint64_t n);

extern const hbm_kernel hbm_kernels[HBM_DTYPES][HBM_REDUCTIONS];
extern const hbm_kernel hbm_kernels_sve[HBM_DTYPES][HBM_REDUCTIONS];

#endif
