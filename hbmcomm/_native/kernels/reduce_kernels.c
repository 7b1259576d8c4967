/* Reduce kernels: out[i] = a[i] op b[i], or (a op b) op c, or ((a op b) op c) op d, one function
   for each dtype and reduction that MPI defines. Each kernel works from left to right, reads every
   input once and writes the output once. It works on memory that no other rank writes at that time,
   so it needs no ordering.

   `out` may be one of the inputs, but not a shifted part of one; `ivdep` passes that to the
   compiler. Signed sums and products are computed unsigned: the bits are the same, and overflow is
   defined. */
#include "kernels/reduce_kernels.h"

#include "kernels/dtype.h"
#include "kernels/vector.h"

#ifndef KERNELS /* reduce_kernels_sve.c defines it */
#define KERNELS hbm_kernels
#endif

#define KERNEL(name, type, expression) KERNEL_AS(HBM_VECTOR, name, type, expression)

/* One loop for each number of inputs: compilers vectorise only what they know at compile time. */
#define KERNEL_AS(clones, name, type, expression)                                      \
    static inline type name##_of(type a, type b) { return (type)(expression); }        \
    clones static void name(void *out_, const void *const *in, int ins, uint64_t n)    \
    {                                                                                  \
        type *out = out_;                                                              \
        const type *a = in[0], *b = in[1], *c = in[ins - 2], *d = in[ins - 1];         \
        if (ins == 2)                                                                  \
            _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)                      \
                out[i] = name##_of(a[i], b[i]);                                        \
        else if (ins == 3)                                                             \
            _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)                      \
                out[i] = name##_of(name##_of(a[i], b[i]), d[i]);                       \
        else                                                                           \
            _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)                      \
                out[i] = name##_of(name##_of(name##_of(a[i], b[i]), c[i]), d[i]);      \
    }

#define ARITHMETIC(clones, type, wrapping)                            \
    KERNEL_AS(clones, sum_##type, type, (wrapping)a + (wrapping)b)   \
    KERNEL_AS(clones, prod_##type, type, (wrapping)a *(wrapping)b)   \
    KERNEL_AS(clones, max_##type, type, a > b ? a : b)               \
    KERNEL_AS(clones, min_##type, type, a < b ? a : b)

#define LOGICAL(type)                              \
    KERNEL(land_##type, type, (a != 0) & (b != 0)) \
    KERNEL(lor_##type, type, (a != 0) | (b != 0))  \
    KERNEL(lxor_##type, type, (a != 0) ^ (b != 0))

#define BITWISE(type)                 \
    KERNEL(band_##type, type, a & b) \
    KERNEL(bor_##type, type, a | b)  \
    KERNEL(bxor_##type, type, a ^ b)

#define INTEGER(type, wrapping) \
    ARITHMETIC(HBM_VECTOR, type, wrapping) LOGICAL(type) BITWISE(type)

#define COMPLEX_SUM(clones, type) \
    KERNEL_AS(clones, sum_##type, type, ((type){a.re + b.re, a.im + b.im}))

/* Without fused multiply-add. With it, the vector part of a loop and its remainder would round
   differently, and the result would depend on an entry's position. gcc 12 fuses this pattern
   wherever the CPU can, in spite of -ffp-contract=off: hence neither clones nor the -march, -mcpu or
   -mfma of a user. clang does not, and ignores these lines. */
#pragma GCC push_options
#if defined(__x86_64__)
#pragma GCC target("no-avx") /* all fused instructions of x86 are extensions of AVX */
#elif defined(__aarch64__)
#pragma GCC target("arch=armv8-a") /* complex instructions came with 8.3 */
#endif

#define COMPLEX_PRODUCT(type)                                       \
    KERNEL_AS(, prod_##type, type,                                 \
               ((type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))

COMPLEX_PRODUCT(complex64)
COMPLEX_PRODUCT(complex128)
COMPLEX_PRODUCT(clongdouble)

#pragma GCC pop_options

INTEGER(int8_t, unsigned)
INTEGER(int16_t, unsigned)
INTEGER(int32_t, uint32_t)
INTEGER(int64_t, uint64_t)
INTEGER(uint8_t, unsigned)
INTEGER(uint16_t, unsigned)
INTEGER(uint32_t, uint32_t)
INTEGER(uint64_t, uint64_t)
ARITHMETIC(HBM_VECTOR, float, float)
ARITHMETIC(HBM_VECTOR, double, double)
ARITHMETIC(, longdouble, longdouble) /* no CPU has vectors of these */
COMPLEX_SUM(HBM_VECTOR, complex64)
COMPLEX_SUM(HBM_VECTOR, complex128)
COMPLEX_SUM(, clongdouble)

/* The lower index where values are equal (MPI-4.1, 6.9.4). */
#define LOCATED(name)                                                                       \
    KERNEL_AS(, maxloc_##name, name,                                                       \
               (a.value > b.value || (a.value == b.value && a.index < b.index)) ? a : b)    \
    KERNEL_AS(, minloc_##name, name,                                                       \
               (a.value < b.value || (a.value == b.value && a.index < b.index)) ? a : b)

LOCATED(short_int)
LOCATED(int_int)
LOCATED(long_int)
LOCATED(float_int)
LOCATED(double_int)
LOCATED(longdouble_int)

#define ARITHMETICS(type) \
    [HBM_SUM] = sum_##type, [HBM_PROD] = prod_##type, [HBM_MAX] = max_##type, [HBM_MIN] = min_##type
#define LOGICALS(type) [HBM_LAND] = land_##type, [HBM_LOR] = lor_##type, [HBM_LXOR] = lxor_##type
#define BITWISES(type) [HBM_BAND] = band_##type, [HBM_BOR] = bor_##type, [HBM_BXOR] = bxor_##type
#define INTEGERS(type) {ARITHMETICS(type), LOGICALS(type), BITWISES(type)}
#define LOCATIONS(type) {[HBM_MAXLOC] = maxloc_##type, [HBM_MINLOC] = minloc_##type}
#define COMPLEXES(type) {[HBM_SUM] = sum_##type, [HBM_PROD] = prod_##type}

const hbm_kernel KERNELS[HBM_DTYPES][HBM_REDUCTIONS] = {
    [HBM_INT8] = INTEGERS(int8_t),
    [HBM_INT16] = INTEGERS(int16_t),
    [HBM_INT32] = INTEGERS(int32_t),
    [HBM_INT64] = INTEGERS(int64_t),
    [HBM_UINT8] = INTEGERS(uint8_t),
    [HBM_UINT16] = INTEGERS(uint16_t),
    [HBM_UINT32] = INTEGERS(uint32_t),
    [HBM_UINT64] = INTEGERS(uint64_t),
    /* reduction.c widens halves to float, and narrows the result */
    [HBM_FLOAT16] = {ARITHMETICS(float)},
    [HBM_BFLOAT16] = {ARITHMETICS(float)},
    [HBM_FLOAT32] = {ARITHMETICS(float)},
    [HBM_FLOAT64] = {ARITHMETICS(double)},
    [HBM_LONGDOUBLE] = {ARITHMETICS(longdouble)},
    [HBM_COMPLEX64] = COMPLEXES(complex64),
    [HBM_COMPLEX128] = COMPLEXES(complex128),
    [HBM_CLONGDOUBLE] = COMPLEXES(clongdouble),
    [HBM_BOOL] = {LOGICALS(uint8_t)}, /* any byte other than 0 is true */
    [HBM_SHORT_INT] = LOCATIONS(short_int),
    [HBM_INT_INT] = LOCATIONS(int_int),
    [HBM_LONG_INT] = LOCATIONS(long_int),
    [HBM_FLOAT_INT] = LOCATIONS(float_int),
    [HBM_DOUBLE_INT] = LOCATIONS(double_int),
    [HBM_LONG_DOUBLE_INT] = LOCATIONS(longdouble_int),
};
