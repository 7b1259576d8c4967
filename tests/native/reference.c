/* What each call must give, said as plainly as can be: one entry at a time, no memory shared.

   Written without a look at the core's folds and conversions: integers are computed in 64 bits,
   halves by the definition of rounding. Compiled without contraction of a * b + c. */
#include "core_test.h"

#include <math.h>

#define PERIOD 1009 /* contents repeat: a prime, so that no piece or block is a multiple of it */

/* Of these the family's own is in use; a complex number has two parts. */
typedef struct {
    uint64_t u;
    float f[2];
    double d[2];
    long double l[2];
} number;

typedef enum { SIGNED, UNSIGNED, FLOAT, DOUBLE, LONG, HALF } family;

static family family_of(int dtype)
{
    if (dtype <= HBM_INT64)
        return SIGNED;
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

/* Where a number's value is kept as it lies in an array; integers on little-endian machines only. */
static void *value_of(int dtype, number *n)
{
    family f = family_of(dtype);
    return f == FLOAT ? (void *)n->f : f == DOUBLE ? (void *)n->d : f == LONG ? (void *)n->l : &n->u;
}

static number load(int dtype, const unsigned char *from)
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

static void store(int dtype, number n, unsigned char *to)
{
    if (family_of(dtype) == HALF)
        n.u = half_from_float(dtype, n.f[0]);
    memcpy(to, value_of(dtype, &n), (size_t)hbm_dtype_size(dtype));
}

/* Reals between 1/4 and 4, so that products of five stay finite in float16; and zeros. */
static double real(uint64_t bits, int mantissa)
{
    uint64_t exponent = 1021 + (bits >> 53 & 3), fraction = bits << 12 >> (64 - mantissa);
    uint64_t packed = exponent << 52 | fraction << (52 - mantissa);
    double size;
    memcpy(&size, &packed, sizeof size);
    return bits >> 58 == 0 ? 0 : bits >> 63 ? -size : size;
}

static void make_entry(int dtype, uint64_t bits, unsigned char *to)
{
    number n;
    memset(&n, 0, sizeof n); /* the padding of a long double too */
    if (family_of(dtype) == SIGNED || family_of(dtype) == UNSIGNED)
        n.u = dtype == HBM_BOOL ? bits & 1 : bits >> 60 ? bits : 0;
    for (int p = 0; p < parts_of(dtype); p++) {
        uint64_t own = p ? mixed(bits) : bits;
        if (family_of(dtype) == HALF)
            n.f[p] = (float)real(own, mantissa_of(dtype));
        else if (family_of(dtype) == FLOAT)
            n.f[p] = (float)real(own, 23);
        else if (family_of(dtype) == DOUBLE)
            n.d[p] = real(own, 52);
        else if (family_of(dtype) == LONG)
            n.l[p] = real(own, 52);
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

static number fold(const hbm_call *call, number a, number b)
{
    family f = family_of(call->dtype);
    int parts = parts_of(call->dtype);
    if (f == SIGNED || f == UNSIGNED)
        return fold_integers(f == SIGNED, call->reduction, a, b);
    return f == DOUBLE ? fold_d(parts, call->reduction, a, b)
           : f == LONG ? fold_l(parts, call->reduction, a, b)
                       : fold_f(parts, call->reduction, a, b);
}

/* ---- calls ---- */

static int each_gets_its_own(const hbm_call *call)
{
    return call->operation == HBM_SCATTER || call->operation == HBM_ALLTOALL
           || call->operation == HBM_REDUCE_SCATTER_BLOCK;
}

uint64_t blocks_sent(const hbm_call *call, int size, int rank)
{
    int rooted = call->operation == HBM_BCAST || call->operation == HBM_SCATTER;
    if (call->operation == HBM_BARRIER || (rooted && rank != call->root))
        return 0;
    return each_gets_its_own(call) ? (uint64_t)size : 1;
}

uint64_t blocks_received(const hbm_call *call, int size, int rank)
{
    int rooted = call->operation == HBM_GATHER || call->operation == HBM_REDUCE;
    if (call->operation == HBM_BARRIER || (rooted && rank != call->root))
        return 0;
    return call->operation == HBM_GATHER || call->operation == HBM_ALLGATHER
                   || call->operation == HBM_ALLTOALL
               ? (uint64_t)size : 1;
}

static void entry_of(const hbm_call *call, uint64_t seed, int rank, uint64_t index,
                     unsigned char *to)
{
    make_entry(call->dtype, mixed(seed ^ (uint64_t)rank << 56 ^ index % PERIOD), to);
}

/* Repeats the first PERIOD of `n` entries. */
static void repeat(unsigned char *at, uint64_t n, uint64_t bytes)
{
    for (uint64_t i = PERIOD; i < n; i += PERIOD)
        memcpy(at + i * bytes, at, (n - i < PERIOD ? n - i : PERIOD) * bytes);
}

void fill_input(const hbm_call *call, uint64_t seed, int size, int rank, void *to)
{
    uint64_t bytes = hbm_dtype_size(call->dtype), n = blocks_sent(call, size, rank) * call->count;
    for (uint64_t i = 0; i < n && i < PERIOD; i++)
        entry_of(call, seed, rank, i, (unsigned char *)to + i * bytes);
    repeat(to, n, bytes);
}

static void expect_entry(const hbm_call *call, uint64_t seed, int size, int source, uint64_t index,
                         unsigned char *to)
{
    unsigned char raw[sizeof(number)]; /* room for any entry */
    entry_of(call, seed, source, index, to);
    if (call->operation < HBM_REDUCE || size == 1)
        return;
    number sum = load(call->dtype, to);
    for (int r = 1; r < size; r++) {
        entry_of(call, seed, r, index, raw);
        sum = fold(call, sum, load(call->dtype, raw));
    }
    store(call->dtype, sum, to);
}

void expect_output(const hbm_call *call, uint64_t seed, int size, int rank, void *to)
{
    uint64_t bytes = hbm_dtype_size(call->dtype), n = call->count;
    uint64_t first = each_gets_its_own(call) ? (uint64_t)rank * n : 0;
    int from_root = call->operation == HBM_BCAST || call->operation == HBM_SCATTER;
    unsigned char *at = to;
    for (uint64_t b = 0; b < blocks_received(call, size, rank); b++, at += n * bytes) {
        for (uint64_t i = 0; i < n && i < PERIOD; i++)
            expect_entry(call, seed, size, from_root ? call->root : (int)b, first + i,
                         at + i * bytes);
        repeat(at, n, bytes);
    }
}

/* Bytes, but for the padding that a long double has. */
int same_output(const hbm_call *call, const void *found, const void *expected, uint64_t entries)
{
    const long double *a = found, *b = expected;
    if (family_of(call->dtype) != LONG)
        return !entries || !memcmp(found, expected, entries * hbm_dtype_size(call->dtype));
    for (uint64_t i = 0; i < entries * (uint64_t)parts_of(call->dtype); i++)
        if (a[i] != b[i])
            return 0;
    return 1;
}
