/* The folds once more, for arm64 CPUs with SVE: compilers clone no functions there (gcc before 14). */
#if defined(__aarch64__)
#include "vector.h"

#undef HBM_VECTOR
#if defined(__clang__)
#define HBM_VECTOR __attribute__((target("sve")))
#else
#define HBM_VECTOR __attribute__((target("+sve")))
#endif
#define FOLDINGS hbm_foldings_sve
#include "fold.c"

#endif
