/* The reduce kernels again, for arm64 CPUs with SVE: gcc before 14 clones no functions there. */
#if defined(__aarch64__)
#include "kernels/vector.h"

#undef HBM_VECTOR
#if defined(__clang__)
#define HBM_VECTOR __attribute__((target("sve")))
#else
#define HBM_VECTOR __attribute__((target("+sve")))
#endif
#define KERNELS hbm_kernels_sve
#include "kernels/reduce_kernels.c"

#endif
