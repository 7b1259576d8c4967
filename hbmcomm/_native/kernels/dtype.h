/* What each dtype is: its C type where C has no single word for it, its size, its alignment. */
#ifndef HBMCOMM_DTYPE_H
#define HBMCOMM_DTYPE_H

#include <stdint.h>

#include "api.h"

typedef long double longdouble;

typedef struct { float re, im; } complex64;
typedef struct { double re, im; } complex128;
typedef struct { long double re, im; } clongdouble;

typedef struct { short value; int index; } short_int;
typedef struct { int value, index; } int_int;
typedef struct { long value; int index; } long_int;
typedef struct { float value; int index; } float_int;
typedef struct { double value; int index; } double_int;
typedef struct { long double value; int index; } longdouble_int;

static inline uint64_t entry_bytes(const hbm_call *call)
{
    return call->reduction == HBM_USER ? call->entry_bytes : hbm_dtype_size(call->dtype);
}

#endif
