/* out[i] = a[i] op b[i], or (a op b) op c, or ((a op b) op c) op d, for every dtype and reduction that
   MPI defines, one function each: from left to right, every input read and the output written once.

   `out` may be one of the inputs, never a shifted part of them (ivdep says so to the compiler).
   Signed sums and products are computed unsigned: the same bits, and overflow is defined. */
#include "comm.h"
#include "dtype.h"
#include "vector.h"

#ifndef FOLDINGS /* see fold_sve.c */
#define FOLDINGS hbm_foldings
#endif

#define FOLDING(name, type, expression) FOLDING_AS(HBM_VECTOR, name, type, expression)

/* A loop for each number of inputs: only what is known at compile time is vectorised. */
#define FOLDING_AS(clones, name, type, expression)                                     \
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
    FOLDING_AS(clones, sum_##type, type, (wrapping)a + (wrapping)b)   \
    FOLDING_AS(clones, prod_##type, type, (wrapping)a *(wrapping)b)   \
    FOLDING_AS(clones, max_##type, type, a > b ? a : b)               \
    FOLDING_AS(clones, min_##type, type, a < b ? a : b)

#define LOGICAL(type)                              \
    FOLDING(land_##type, type, (a != 0) & (b != 0)) \
    FOLDING(lor_##type, type, (a != 0) | (b != 0))  \
    FOLDING(lxor_##type, type, (a != 0) ^ (b != 0))

#define BITWISE(type)                 \
    FOLDING(band_##type, type, a & b) \
    FOLDING(bor_##type, type, a | b)  \
    FOLDING(bxor_##type, type, a ^ b)

#define INTEGER(type, wrapping) \
    ARITHMETIC(HBM_VECTOR, type, wrapping) LOGICAL(type) BITWISE(type)

/* A product is compiled once, without fused multiply-add: it would round differently in the vector
   part of a loop and in its rest, and so by where an entry lies. */
#define COMPLEX(clones, type)                                                    \
    FOLDING_AS(clones, sum_##type, type, ((type){a.re + b.re, a.im + b.im}))     \
    FOLDING_AS(, prod_##type, type,                                              \
               ((type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))

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
ARITHMETIC(, longdouble, longdouble) /* there are no vectors of these */
COMPLEX(HBM_VECTOR, complex64)
COMPLEX(HBM_VECTOR, complex128)
COMPLEX(, clongdouble)

/* The lower index where values are equal (MPI-4.1, 6.9.4). */
#define LOCATED(name)                                                                       \
    FOLDING_AS(, maxloc_##name, name,                                                       \
               (a.value > b.value || (a.value == b.value && a.index < b.index)) ? a : b)    \
    FOLDING_AS(, minloc_##name, name,                                                       \
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

const hbm_folding FOLDINGS[HBM_DTYPES][HBM_REDUCTIONS] = {
    [HBM_INT8] = INTEGERS(int8_t),
    [HBM_INT16] = INTEGERS(int16_t),
    [HBM_INT32] = INTEGERS(int32_t),
    [HBM_INT64] = INTEGERS(int64_t),
    [HBM_UINT8] = INTEGERS(uint8_t),
    [HBM_UINT16] = INTEGERS(uint16_t),
    [HBM_UINT32] = INTEGERS(uint32_t),
    [HBM_UINT64] = INTEGERS(uint64_t),
    /* the halves are folded as floats; combine.c widens and narrows them */
    [HBM_FLOAT16] = {ARITHMETICS(float)},
    [HBM_BFLOAT16] = {ARITHMETICS(float)},
    [HBM_FLOAT32] = {ARITHMETICS(float)},
    [HBM_FLOAT64] = {ARITHMETICS(double)},
    [HBM_LONGDOUBLE] = {ARITHMETICS(longdouble)},
    [HBM_COMPLEX64] = COMPLEXES(complex64),
    [HBM_COMPLEX128] = COMPLEXES(complex128),
    [HBM_CLONGDOUBLE] = COMPLEXES(clongdouble),
    [HBM_BOOL] = {LOGICALS(uint8_t)}, /* bytes that are neither 0 nor 1 count as true */
    [HBM_SHORT_INT] = LOCATIONS(short_int),
    [HBM_INT_INT] = LOCATIONS(int_int),
    [HBM_LONG_INT] = LOCATIONS(long_int),
    [HBM_FLOAT_INT] = LOCATIONS(float_int),
    [HBM_DOUBLE_INT] = LOCATIONS(double_int),
    [HBM_LONG_DOUBLE_INT] = LOCATIONS(longdouble_int),
};
