/* Single entries: made, folded and compared.

   Written without a look at the core's folds and conversions: integers are computed in 64 bits,
   halves by the definition of rounding. Compiled without contraction of a * b + c. */
#include "entries.h"

#include <math.h>

int only_exact_values;

family family_of(int dtype)
{
    if (dtype <= HBM_INT64)
        return SIGNED;
    if (dtype >= HBM_SHORT_INT)
        return PAIR;
    if (dtype == HBM_FLOAT16 || dtype == HBM_BFLOAT16)
        return HALF;
    if (dtype == HBM_FLOAT32 || dtype == HBM_COMPLEX64)
        return FLOAT;
    if (dtype == HBM_FLOAT64 || dtype == HBM_COMPLEX128)
        return DOUBLE;
    if (dtype == HBM_LONGDOUBLE || dtype == HBM_CLONGDOUBLE)
        return LONG;
    return UNSIGNED;
}

static int parts_of(int dtype)
{
    return dtype == HBM_COMPLEX64 || dtype == HBM_COMPLEX128 || dtype == HBM_CLONGDOUBLE ? 2 : 1;
}

/* ---- halves ---- */

static int mantissa_of(int dtype) { return dtype == HBM_FLOAT16 ? 10 : 7; }
static int bias_of(int dtype) { return dtype == HBM_FLOAT16 ? 15 : 127; }

float half_to_float(int dtype, uint16_t half)
{
    int bits = mantissa_of(dtype), mantissa = half & ((1 << bits) - 1);
    int exponent = (half & 0x7fff) >> bits;
    float sign = half & 0x8000 ? -1.0f : 1.0f;
    if (exponent == 2 * bias_of(dtype) + 1)
        return mantissa ? NAN : sign * INFINITY;
    if (!exponent)
        return sign * (float)ldexp(mantissa, 1 - bias_of(dtype) - bits);
    return sign * (float)ldexp(mantissa + (1 << bits), exponent - bias_of(dtype) - bits);
}

uint16_t half_from_float(int dtype, float value)
{
    int bits = mantissa_of(dtype), bias = bias_of(dtype), exponent;
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint16_t infinite = (uint16_t)((2 * bias + 1) << bits);
    double size = fabs((double)value);
    if (isnan(value))
        return (uint16_t)(sign | infinite | 1 << (bits - 1));
    if (isinf(value))
        return sign | infinite;
    frexp(size, &exponent); /* size = m * 2^exponent, 0.5 <= m < 1 */
    if (size == 0 || exponent < 2 - bias)
        exponent = 2 - bias;
    double places = rint(ldexp(size, bits + 1 - exponent)); /* ties to even */
    int biased = exponent + bias - 1;
    if (places < ldexp(1, bits))
        return (uint16_t)(sign | (int)places);
    int encoded = ((biased - 1) << bits) + (int)places; /* a carry moves into the exponent */
    return (uint16_t)(sign | (encoded < infinite ? encoded : infinite));
}

/* ---- entries ---- */

/* Where the index of a pair is: after the value, aligned. */
static size_t index_at(int dtype)
{
    switch (dtype) {
    case HBM_LONG_INT: return sizeof(long);
    case HBM_DOUBLE_INT: return sizeof(double);
    case HBM_LONG_DOUBLE_INT: return sizeof(long double);
    default: return 4;
    }
}

static long double pair_value(int dtype, const unsigned char *at)
{
    short s;
    int i;
    long l;
    float f;
    double d;
    long double x;
    switch (dtype) {
    case HBM_SHORT_INT: memcpy(&s, at, sizeof s); return s;
    case HBM_INT_INT: memcpy(&i, at, sizeof i); return i;
    case HBM_LONG_INT: memcpy(&l, at, sizeof l); return l;
    case HBM_FLOAT_INT: memcpy(&f, at, sizeof f); return (long double)f;
    case HBM_DOUBLE_INT: memcpy(&d, at, sizeof d); return (long double)d;
    default: memcpy(&x, at, sizeof x); return x;
    }
}

static int pair_index(int dtype, const unsigned char *at)
{
    int index;
    memcpy(&index, at + index_at(dtype), sizeof index);
    return index;
}

/* Where a number's value is kept as it lies in an array; integers on little-endian machines only. */
static void *value_of(int dtype, number *n)
{
    family f = family_of(dtype);
    return f == FLOAT ? (void *)n->f : f == DOUBLE ? (void *)n->d : f == LONG ? (void *)n->l : &n->u;
}

number load(int dtype, const unsigned char *from)
{
    size_t size = (size_t)hbm_dtype_size(dtype);
    number n = {.u = 0};
    memcpy(value_of(dtype, &n), from, size);
    if (family_of(dtype) == HALF)
        n.f[0] = half_to_float(dtype, (uint16_t)n.u);
    if (family_of(dtype) == SIGNED && size < 8 && n.u >> (8 * size - 1))
        n.u |= ~(uint64_t)0 << 8 * size;
    return n;
}

void store(int dtype, number n, unsigned char *to)
{
    if (family_of(dtype) == HALF)
        n.u = half_from_float(dtype, n.f[0]);
    memcpy(to, value_of(dtype, &n), (size_t)hbm_dtype_size(dtype));
}

/* Reals between 1/4 and 4, so that products of five stay finite in float16; and zeros. */
static double real(uint64_t bits, int mantissa)
{
    if (only_exact_values)
        return (double)(bits >> 60 & 2) - 1;
    uint64_t exponent = 1021 + (bits >> 53 & 3), fraction = bits << 12 >> (64 - mantissa);
    uint64_t packed = exponent << 52 | fraction << (52 - mantissa);
    double size;
    memcpy(&size, &packed, sizeof size);
    return bits >> 58 == 0 ? 0 : bits >> 63 ? -size : size;
}

/* A value of few, so that many are equal, and an index; between them may be padding. */
static void make_pair(int dtype, uint64_t bits, unsigned char *to)
{
    int value = (int)(bits >> 40 & 15) - 8, index = (int)(bits & 0xffff);
    memset(to, 0, (size_t)hbm_dtype_size(dtype));
    switch (dtype) {
    case HBM_SHORT_INT: memcpy(to, &(short){(short)value}, sizeof(short)); break;
    case HBM_INT_INT: memcpy(to, &value, sizeof value); break;
    case HBM_LONG_INT: memcpy(to, &(long){value}, sizeof(long)); break;
    case HBM_FLOAT_INT: memcpy(to, &(float){(float)value}, sizeof(float)); break;
    case HBM_DOUBLE_INT: memcpy(to, &(double){value}, sizeof(double)); break;
    default: memcpy(to, &(long double){value}, sizeof(long double)); break;
    }
    memcpy(to + index_at(dtype), &index, sizeof index);
}

void make_entry(int dtype, uint64_t bits, unsigned char *to)
{
    if (family_of(dtype) == PAIR) {
        make_pair(dtype, bits, to);
        return;
    }
    number n;
    memset(&n, 0, sizeof n); /* the padding of a long double too */
    if (family_of(dtype) == SIGNED || family_of(dtype) == UNSIGNED)
        n.u = dtype == HBM_BOOL ? bits & 1 : bits >> 60 ? bits : 0;
    for (int p = 0; p < parts_of(dtype); p++) {
        uint64_t own = p ? mixed(bits) : bits;
        if (only_exact_values && parts_of(dtype) == 2 && p == (int)(bits >> 50 & 1))
            continue; /* a product of such complex numbers is one of them */
        if (family_of(dtype) == HALF)
            n.f[p] = (float)real(own, mantissa_of(dtype));
        else if (family_of(dtype) == FLOAT)
            n.f[p] = (float)real(own, 23);
        else if (family_of(dtype) == DOUBLE)
            n.d[p] = real(own, 52);
        else if (family_of(dtype) == LONG)
            n.l[p] = (long double)real(own, 52);
    }
    store(dtype, n, to);
}

/* ---- reductions ---- */

static number fold_integers(int is_signed, int reduction, number a, number b)
{
    number n = {.u = 0};
    int above = is_signed ? (int64_t)a.u > (int64_t)b.u : a.u > b.u;
    switch (reduction) {
    case HBM_SUM: n.u = a.u + b.u; break;
    case HBM_PROD: n.u = a.u * b.u; break;
    case HBM_MAX: n.u = above ? a.u : b.u; break;
    case HBM_MIN: n.u = above ? b.u : a.u; break;
    case HBM_LAND: n.u = a.u && b.u; break;
    case HBM_LOR: n.u = a.u || b.u; break;
    case HBM_LXOR: n.u = !a.u != !b.u; break;
    case HBM_BAND: n.u = a.u & b.u; break;
    case HBM_BOR: n.u = a.u | b.u; break;
    default: n.u = a.u ^ b.u; break;
    }
    return n;
}

#define FOLD_REALS(field)                                                              \
    static number fold_##field(int parts, int reduction, number a, number b)           \
    {                                                                                  \
        number n = a;                                                                  \
        if (reduction == HBM_SUM) {                                                    \
            n.field[0] = a.field[0] + b.field[0];                                      \
            n.field[1] = a.field[1] + b.field[1];                                      \
        } else if (reduction == HBM_PROD && parts == 2) {                              \
            n.field[0] = a.field[0] * b.field[0] - a.field[1] * b.field[1];            \
            n.field[1] = a.field[0] * b.field[1] + a.field[1] * b.field[0];            \
        } else if (reduction == HBM_PROD) {                                            \
            n.field[0] = a.field[0] * b.field[0];                                      \
        } else {                                                                       \
            int first = reduction == HBM_MAX ? a.field[0] > b.field[0]                 \
                                             : a.field[0] < b.field[0];                \
            n.field[0] = first ? a.field[0] : b.field[0];                              \
        }                                                                              \
        return n;                                                                      \
    }
FOLD_REALS(f)
FOLD_REALS(d)
FOLD_REALS(l)

number fold(const hbm_call *call, number a, number b)
{
    family f = family_of(call->dtype);
    int parts = parts_of(call->dtype);
    if (f == SIGNED || f == UNSIGNED)
        return fold_integers(f == SIGNED, call->reduction, a, b);
    return f == DOUBLE ? fold_d(parts, call->reduction, a, b)
           : f == LONG ? fold_l(parts, call->reduction, a, b)
                       : fold_f(parts, call->reduction, a, b);
}

/* The one of two pairs that counts. */
void fold_pair(const hbm_call *call, unsigned char *to, const unsigned char *other)
{
    long double a = pair_value(call->dtype, to), b = pair_value(call->dtype, other);
    int lower = pair_index(call->dtype, other) < pair_index(call->dtype, to);
    if ((call->reduction == HBM_MAXLOC ? b > a : b < a) || (a == b && lower))
        memcpy(to, other, (size_t)hbm_dtype_size(call->dtype));
}

int same_entry(int dtype, const unsigned char *found, const unsigned char *expected)
{
    long double a[2], b[2];
    size_t bytes = (size_t)hbm_dtype_size(dtype);
    if (!memcmp(found, expected, bytes))
        return 1;
    if (only_exact_values && (dtype == HBM_COMPLEX64 || dtype == HBM_COMPLEX128)) {
        number x = load(dtype, found), y = load(dtype, expected); /* zeros may differ in sign */
        return dtype == HBM_COMPLEX64 ? x.f[0] == y.f[0] && x.f[1] == y.f[1]
                                      : x.d[0] == y.d[0] && x.d[1] == y.d[1];
    }
    if (family_of(dtype) == PAIR)
        return pair_value(dtype, found) == pair_value(dtype, expected)
               && pair_index(dtype, found) == pair_index(dtype, expected);
    if (family_of(dtype) != LONG)
        return 0;
    memcpy(a, found, bytes);
    memcpy(b, expected, bytes);
    return a[0] == b[0] && (parts_of(dtype) == 1 || a[1] == b[1]);
}
