/* Values: every half; floats at, beside and between all halves; every reduction of every dtype. */
#include "core_test.h"
#include "kernels/half.h"

#include <math.h>

#define BATCH 1000 /* not a whole number of vectors */

static void widen(int dtype, float *to, const uint16_t *from, uint64_t n)
{
    (dtype == HBM_FLOAT16 ? hbm_widen_float16 : hbm_widen_bfloat16)(to, from, n);
}

static void narrow(int dtype, uint16_t *to, const float *from, uint64_t n)
{
    (dtype == HBM_FLOAT16 ? hbm_narrow_float16 : hbm_narrow_bfloat16)(to, from, n);
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The NaN of 32 bits for the NaN of a half; that of a float16 becomes quiet. */
static uint32_t widened_nan(int dtype, uint16_t half)
{
    if (dtype == HBM_BFLOAT16)
        return (uint32_t)half << 16;
    return (uint32_t)(half & 0x8000) << 16 | 0x7fc00000 | (uint32_t)(half & 0x3ff) << 13;
}

/* The quiet NaN of 16 bits, with the sign and the upper bits of the mantissa. */
static uint16_t narrowed_nan(int dtype, uint32_t bits)
{
    if (dtype == HBM_BFLOAT16)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff));
}

static void check_halves(int dtype)
{
    static uint16_t halves[65536], back[65536];
    static float floats[65536];
    for (uint32_t h = 0; h < 65536; h++)
        halves[h] = (uint16_t)h;
    widen(dtype, floats, halves, 65536);
    narrow(dtype, back, floats, 65536);
    for (uint32_t h = 0; h < 65536; h++) {
        float expected = half_to_float(dtype, halves[h]);
        if (isnan(expected)) {
            CHECK(bits_of(floats[h]) == widened_nan(dtype, halves[h]), "the NaN %#x became %#x", h,
                  bits_of(floats[h]));
            CHECK(back[h] == narrowed_nan(dtype, bits_of(floats[h])),
                  "the NaN %#x came back as %#x", h, back[h]);
            continue;
        }
        CHECK(bits_of(floats[h]) == bits_of(expected), "%#x became %a, not %a", h,
              (double)floats[h], (double)expected);
        CHECK(back[h] == h, "%#x came back as %#x", h, back[h]);
    }
}

static void check_floats(int dtype, const float *floats, uint64_t n)
{
    uint16_t halves[BATCH];
    narrow(dtype, halves, floats, n);
    for (uint64_t i = 0; i < n; i++) {
        uint16_t expected = isnan(floats[i]) ? narrowed_nan(dtype, bits_of(floats[i]))
                                             : half_from_float(dtype, floats[i]);
        CHECK(halves[i] == expected, "%#x became %#x, not %#x", bits_of(floats[i]), halves[i],
              expected);
    }
}

/* Each half, the middle between it and the next, and the neighbours of both floats. */
static void check_edges(int dtype)
{
    float floats[BATCH];
    uint64_t n = 0;
    for (uint32_t h = 0; h < 65535; h++) {
        float here = half_to_float(dtype, (uint16_t)h);
        float next = half_to_float(dtype, (uint16_t)(h + 1));
        if (isnan(here))
            continue;
        float middle = isinf(next) ? here * (1 + ldexpf(1, dtype == HBM_FLOAT16 ? -11 : -8))
                                   : (float)(((double)here + (double)next) / 2);
        for (int step = -1; step <= 1; step++) {
            floats[n++] = float_of(bits_of(here) + (uint32_t)step);
            floats[n++] = float_of(bits_of(middle) + (uint32_t)step);
        }
        if (n + 6 > BATCH) {
            check_floats(dtype, floats, n);
            n = 0;
        }
    }
    check_floats(dtype, floats, n);
}

static const int half_dtypes[] = {HBM_FLOAT16, HBM_BFLOAT16};

static void check_all_halves(UNUSED uint64_t seed)
{
    for (int t = 0; t < 2; t++) {
        check_halves(half_dtypes[t]);
        check_edges(half_dtypes[t]);
    }
}

static void check_any_floats(uint64_t seed)
{
    float floats[BATCH];
    dice d = {seed};
    for (int i = 0; i < BATCH; i++)
        floats[i] = float_of((uint32_t)mixed(d.state++));
    for (int t = 0; t < 2; t++)
        check_floats(half_dtypes[t], floats, 1 + roll(&d, BATCH));
}

void test_halves(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    with_fewer_extensions(check_all_halves, seed);
    do
        with_fewer_extensions(check_any_floats, seed++);
    while (seconds_now() < end);
}

/* Lengths around those of vectors and chunks; outputs apart from the inputs or in one of them. */
static void check_reduction(hbm_call call, int inputs, uint64_t n, int over, int how)
{
    uint64_t bytes = n * hbm_dtype_size(call.dtype);
    const void *in[MOST_RANKS];
    void *memory[MOST_RANKS], *out[2], *expected = malloc(bytes);
    call.count = n;
    for (int r = 0; r < inputs; r++) {
        in[r] = memory[r] = malloc(bytes);
        fill_input(&call, n, inputs, r, memory[r]);
    }
    out[0] = over < 0 ? malloc(bytes) : memory[over];
    out[1] = malloc(bytes);
    expect_output(&call, n, inputs, 0, expected);
    CHECK(hbm_combine(&call, in, inputs, out, 2, 0, bytes, how) == HBM_OK, "not reduced");
    hbm_stream_end();
    for (int o = 0; o < 2; o++)
        CHECK(same_output(&call, out[o], expected, n), "reduction %d of %d x %llu x dtype %d",
              call.reduction, inputs, (unsigned long long)n, call.dtype);
    for (int r = 0; r < inputs; r++)
        free(memory[r]);
    if (over < 0)
        free(out[0]);
    free(out[1]);
    free(expected);
}

void test_reductions(uint64_t seed, UNUSED double seconds)
{
    dice d = {seed};
    for (uint8_t dtype = 0; dtype < HBM_DTYPES; dtype++)
        for (uint8_t reduction = 0; reduction < HBM_REDUCTIONS; reduction++)
            for (int inputs = 1; inputs <= 9 && hbm_reduces(dtype, reduction); inputs++) {
                hbm_call call = {.operation = HBM_ALLREDUCE, .dtype = dtype,
                                 .reduction = reduction};
                check_reduction(call, inputs, 1 + roll(&d, 40), -1, IN_ORDER);
                check_reduction(call, inputs, 2000 + roll(&d, 9000), -1, STREAMING);
                check_reduction(call, inputs, 2000 + roll(&d, 9000), 0, IN_ORDER);
                check_reduction(call, inputs, 2000 + roll(&d, 9000), inputs - 1, IN_TURN);
                check_reduction(call, inputs, 2000 + roll(&d, 9000), inputs / 2, STREAMING);
                check_reduction(call, inputs, 9000 + roll(&d, 9000), -1, IN_TURN);
            }
}
