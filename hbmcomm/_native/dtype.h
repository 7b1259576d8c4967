/* The C types of the dtypes that C has no one word for. */
#ifndef HBMCOMM_DTYPE_H
#define HBMCOMM_DTYPE_H

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

#endif
