/* Single entries: makes, reduces and compares them.

   It is independent of the core's kernels and conversions: it computes integers in 64 bits, and
   halves by the definition of rounding. It is compiled without contraction of a * b + c. */
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

#define PAIR_TYPES(X)                                                       \
    X(HBM_SHORT_INT, short) X(HBM_INT_INT, int) X(HBM_LONG_INT, long)       \
    X(HBM_FLOAT_INT, float) X(HBM_DOUBLE_INT, double)                       \
    X(HBM_LONG_DOUBLE_INT, long double)

/* The offset of a pair's index: after the value, aligned. */
static size_t index_at(int dtype)
{
#define OFFSET(code, type) \
    case code: return sizeof(type) > sizeof(int) ? sizeof(type) : sizeof(int);
    switch (dtype) {
        PAIR_TYPES(OFFSET)
    default: return 0;
    }
}

static long double pair_value(int dtype, const unsigned char *at)
{
#define LOAD(code, type) \
    case code: { type v; memcpy(&v, at, sizeof v); return (long double)v; }
    switch (dtype) {
        PAIR_TYPES(LOAD)
    default: return 0;
    }
}

static int pair_index(int dtype, const unsigned char *at)
{
    int index;
    memcpy(&index, at + index_at(dtype), sizeof index);
    return index;
}

/* The part of a number that has the bytes of an array's entry; integers need a little-endian
   machine. */
static void *value_of(int dtype, number *n)
{
    family f = family_of(dtype);
    return f == FLOAT ? (void *)n->f : f == DOUBLE ? (void *)n->d
           : f == LONG ? (void *)n->l : &n->u;
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

/* A value from a small range, so that many are equal, and an index; there may be padding
   between. */
static void make_pair(int dtype, uint64_t bits, unsigned char *to)
{
    int value = (int)(bits >> 40 & 15) - 8, index = (int)(bits & 0xffff);
    memset(to, 0, (size_t)hbm_dtype_size(dtype));
#define STORE(code, type) \
    case code: memcpy(to, &(type){(type)value}, sizeof(type)); break;
    switch (dtype) { PAIR_TYPES(STORE) }
    memcpy(to + index_at(dtype), &index, sizeof index);
}

void make_entry(int dtype, uint64_t bits, unsigned char *to)
{
    if (family_of(dtype) == PAIR) {
        make_pair(dtype, bits, to);
        return;
    }
    number n;
    memset(&n, 0, sizeof n); /* also the padding of a long double */
    if (family_of(dtype) == SIGNED || family_of(dtype) == UNSIGNED)
        n.u = dtype == HBM_BOOL ? bits & 1 : bits >> 60 ? bits : 0;
    for (int p = 0; p < parts_of(dtype); p++) {
        uint64_t own = p ? mixed(bits) : bits;
        if (only_exact_values && parts_of(dtype) == 2 && p == (int)(bits >> 50 & 1))
            continue; /* products of such complex numbers are such numbers too */
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

static number reduce_integers(int is_signed, int reduction, number a, number b)
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

#define REDUCE_REALS(field)                                                              \
    static number reduce_##field(int parts, int reduction, number a, number b)           \
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
REDUCE_REALS(f)
REDUCE_REALS(d)
REDUCE_REALS(l)

number reduce(const hbm_call *call, number a, number b)
{
    family f = family_of(call->dtype);
    int parts = parts_of(call->dtype);
    if (f == SIGNED || f == UNSIGNED)
        return reduce_integers(f == SIGNED, call->reduction, a, b);
    return f == DOUBLE ? reduce_d(parts, call->reduction, a, b)
           : f == LONG ? reduce_l(parts, call->reduction, a, b)
                       : reduce_f(parts, call->reduction, a, b);
}

/* Keeps the pair that MAXLOC or MINLOC selects. */
void reduce_pair(const hbm_call *call, unsigned char *to, const unsigned char *other)
{
    long double a = pair_value(call->dtype, to), b = pair_value(call->dtype, other);
    int lower = pair_index(call->dtype, other) < pair_index(call->dtype, to);
    if ((call->reduction == HBM_MAXLOC ? b > a : b < a) || (a == b && lower))
        memcpy(to, other, (size_t)hbm_dtype_size(call->dtype));
}

int same_entry(int dtype, const unsigned char *entry, const unsigned char *expected)
{
    long double a[2], b[2];
    size_t bytes = (size_t)hbm_dtype_size(dtype);
    if (!memcmp(entry, expected, bytes))
        return 1;
    if (only_exact_values && (dtype == HBM_COMPLEX64 || dtype == HBM_COMPLEX128)) {
        number x = load(dtype, entry), y = load(dtype, expected); /* zeros may differ in sign */
        return dtype == HBM_COMPLEX64 ? x.f[0] == y.f[0] && x.f[1] == y.f[1]
                                      : x.d[0] == y.d[0] && x.d[1] == y.d[1];
    }
    if (family_of(dtype) == PAIR)
        return pair_value(dtype, entry) == pair_value(dtype, expected)
               && pair_index(dtype, entry) == pair_index(dtype, expected);
    if (family_of(dtype) != LONG)
        return 0;
    memcpy(a, entry, bytes);
    memcpy(b, expected, bytes);
    return a[0] == b[0] && (parts_of(dtype) == 1 || a[1] == b[1]);
}
