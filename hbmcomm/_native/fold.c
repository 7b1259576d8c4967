/* out[i] = a[i] op b[i] for every dtype and reduction that MPI defines, one function each.

   `out` may be `a` or `b` itself, never a shifted part of them (ivdep says so to the compiler).
   Signed sums and products are computed unsigned: the same bits, and overflow is defined. */
#include "comm.h"
#include "vector.h"

typedef struct { float re, im; } complex64;
typedef struct { double re, im; } complex128;
typedef struct { long double re, im; } clongdouble;

#define FOLDING(name, type, expression) FOLDING_AS(HBM_VECTOR, name, type, expression)

#define FOLDING_AS(clones, name, type, expression)                                          \
    clones static void name(void *out_, const void *a_, const void *b_, uint64_t n)     \
    {                                                                                       \
        type *out = out_;                                                                   \
        const type *as = a_, *bs = b_;                                                      \
        _Pragma("GCC ivdep") for (uint64_t i = 0; i < n; i++)                               \
        {                                                                                   \
            type a = as[i], b = bs[i];                                                      \
            out[i] = (type)(expression);                                                    \
        }                                                                                   \
    }

#define ARITHMETIC(type, wrapping)                         \
    FOLDING(sum_##type, type, (wrapping)a + (wrapping)b)   \
    FOLDING(prod_##type, type, (wrapping)a *(wrapping)b)   \
    FOLDING(max_##type, type, a > b ? a : b)               \
    FOLDING(min_##type, type, a < b ? a : b)

#define LOGICAL(type)                              \
    FOLDING(land_##type, type, (a != 0) & (b != 0)) \
    FOLDING(lor_##type, type, (a != 0) | (b != 0))  \
    FOLDING(lxor_##type, type, (a != 0) ^ (b != 0))

#define BITWISE(type)                 \
    FOLDING(band_##type, type, a & b) \
    FOLDING(bor_##type, type, a | b)  \
    FOLDING(bxor_##type, type, a ^ b)

#define INTEGER(type, wrapping) ARITHMETIC(type, wrapping) LOGICAL(type) BITWISE(type)

/* A product is compiled once, without fused multiply-add: it would round differently in the vector
   part of a loop and in its rest, and so by where an entry lies. */
#define COMPLEX(type)                                             \
    FOLDING(sum_##type, type, ((type){a.re + b.re, a.im + b.im})) \
    FOLDING_AS(, prod_##type, type,                               \
               ((type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}))

typedef long double longdouble;

INTEGER(int8_t, unsigned)
INTEGER(int16_t, unsigned)
INTEGER(int32_t, uint32_t)
INTEGER(int64_t, uint64_t)
INTEGER(uint8_t, unsigned)
INTEGER(uint16_t, unsigned)
INTEGER(uint32_t, uint32_t)
INTEGER(uint64_t, uint64_t)
ARITHMETIC(float, float)
ARITHMETIC(double, double)
ARITHMETIC(longdouble, longdouble)
COMPLEX(complex64)
COMPLEX(complex128)
COMPLEX(clongdouble)

/* The lower index where values are equal (MPI-4.1, 6.9.4). */
#define LOCATED(name, type)                                                              \
    typedef struct {                                                                            \
        type value;                                                                             \
        int index;                                                                              \
    } name;                                                                                     \
    FOLDING_AS(, maxloc_##name, name,                                                           \
               (a.value > b.value || (a.value == b.value && a.index < b.index)) ? a : b)        \
    FOLDING_AS(, minloc_##name, name,                                                           \
               (a.value < b.value || (a.value == b.value && a.index < b.index)) ? a : b)

LOCATED(short_int, short)
LOCATED(int_int, int)
LOCATED(long_int, long)
LOCATED(float_int, float)
LOCATED(double_int, double)
LOCATED(longdouble_int, longdouble)

#define ARITHMETICS(type) \
    [HBM_SUM] = sum_##type, [HBM_PROD] = prod_##type, [HBM_MAX] = max_##type, [HBM_MIN] = min_##type
#define LOGICALS(type) [HBM_LAND] = land_##type, [HBM_LOR] = lor_##type, [HBM_LXOR] = lxor_##type
#define BITWISES(type) [HBM_BAND] = band_##type, [HBM_BOR] = bor_##type, [HBM_BXOR] = bxor_##type
#define INTEGERS(type) {ARITHMETICS(type), LOGICALS(type), BITWISES(type)}
#define LOCATIONS(type) {[HBM_MAXLOC] = maxloc_##type, [HBM_MINLOC] = minloc_##type}
#define COMPLEXES(type) {[HBM_SUM] = sum_##type, [HBM_PROD] = prod_##type}

static const hbm_folding foldings[HBM_DTYPES][HBM_REDUCTIONS] = {
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

static const uint8_t sizes[HBM_DTYPES] = {
    [HBM_INT8] = 1, [HBM_INT16] = 2, [HBM_INT32] = 4, [HBM_INT64] = 8,
    [HBM_UINT8] = 1, [HBM_UINT16] = 2, [HBM_UINT32] = 4, [HBM_UINT64] = 8,
    [HBM_FLOAT16] = 2, [HBM_BFLOAT16] = 2, [HBM_FLOAT32] = 4, [HBM_FLOAT64] = 8,
    [HBM_LONGDOUBLE] = sizeof(longdouble),
    [HBM_COMPLEX64] = 8, [HBM_COMPLEX128] = 16, [HBM_CLONGDOUBLE] = sizeof(clongdouble),
    [HBM_BOOL] = 1, [HBM_PACKED] = 1,
    [HBM_SHORT_INT] = sizeof(short_int), [HBM_INT_INT] = sizeof(int_int),
    [HBM_LONG_INT] = sizeof(long_int), [HBM_FLOAT_INT] = sizeof(float_int),
    [HBM_DOUBLE_INT] = sizeof(double_int), [HBM_LONG_DOUBLE_INT] = sizeof(longdouble_int),
};

static const uint8_t alignments[HBM_DTYPES] = {
    [HBM_INT8] = 1, [HBM_INT16] = 2, [HBM_INT32] = 4, [HBM_INT64] = 8,
    [HBM_UINT8] = 1, [HBM_UINT16] = 2, [HBM_UINT32] = 4, [HBM_UINT64] = 8,
    [HBM_FLOAT16] = 2, [HBM_BFLOAT16] = 2, [HBM_FLOAT32] = 4, [HBM_FLOAT64] = 8,
    [HBM_LONGDOUBLE] = _Alignof(longdouble),
    [HBM_COMPLEX64] = 4, [HBM_COMPLEX128] = 8, [HBM_CLONGDOUBLE] = _Alignof(longdouble),
    [HBM_BOOL] = 1, [HBM_PACKED] = 1,
    [HBM_SHORT_INT] = _Alignof(short_int), [HBM_INT_INT] = _Alignof(int_int),
    [HBM_LONG_INT] = _Alignof(long_int), [HBM_FLOAT_INT] = _Alignof(float_int),
    [HBM_DOUBLE_INT] = _Alignof(double_int), [HBM_LONG_DOUBLE_INT] = _Alignof(longdouble_int),
};

uint64_t hbm_dtype_size(int dtype) { return sizes[dtype]; }

uint64_t hbm_alignment(int dtype) { return alignments[dtype]; }

hbm_folding hbm_folding_of(int dtype, int reduction) { return foldings[dtype][reduction]; }

int hbm_reduces(int dtype, int reduction)
{
    return dtype >= 0 && dtype < HBM_DTYPES && reduction >= 0 && reduction < HBM_REDUCTIONS
           && foldings[dtype][reduction] != NULL;
}
