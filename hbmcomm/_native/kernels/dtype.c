/* The tables of sizes and alignments. */
#include "kernels/dtype.h"

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
