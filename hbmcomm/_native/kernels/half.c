/* float16 and bfloat16 to float and back. float16 uses the CPU's instruction where there is one,
   else code for one entry at a time that gives the same bits. bfloat16 uses loops that compilers
   vectorise. All of it works on memory of this rank alone, so it needs no ordering.

   Rounds to nearest, ties to even, as IEEE 754 and NumPy do. A NaN keeps its sign and the upper
   bits of its mantissa, and becomes quiet. */
#include "kernels/half.h"

#include <string.h>

#include "kernels/vector.h"

static inline float as_float(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static inline uint32_t as_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

/* No intermediate float is subnormal, so the result is the same in a process that flushes those to
   0. The unit in the last place of 0.5 is 2^-24, which is that of a subnormal half. */
static inline float widen16(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7fff) << 13, sign = (uint32_t)(half & 0x8000) << 16;
    uint32_t subnormal = as_bits(as_float(0x3f000000u | (half & 0x3ffu)) - 0.5f);
    uint32_t normal = magnitude + (112u << 23);
    uint32_t quiet = (uint32_t)((half & 0x3ff) != 0) << 22;
    uint32_t special = magnitude | 0x7f800000u | quiet; /* infinity or NaN */
    uint32_t finite = (half & 0x7c00) == 0 ? subnormal : normal;
    return as_float(((half & 0x7c00) == 0x7c00 ? special : finite) | sign);
}

/* Adding 0.5, which has the unit in the last place of a subnormal half, rounds at the right bit. */
static inline uint16_t narrow16(float value)
{
    uint32_t bits = as_bits(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    uint32_t subnormal = as_bits(as_float(magnitude) + 0.5f) - as_bits(0.5f);
    uint32_t normal = (magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23)) >> 13;
    uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    uint32_t half = magnitude >= 0x477ff000u ? 0x7c00 : finite;
    half = magnitude > 0x7f800000u ? 0x7e00 | (magnitude >> 13 & 0x3ff) : half;
    return (uint16_t)(half | sign);
}

static inline uint16_t narrow_b16(float value)
{
    uint32_t bits = as_bits(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000u ? (bits >> 16 | 0x40) : rounded);
}

/* The CPU's instructions convert as many entries as fill whole vectors; these functions return how
   many. */

#if defined(__x86_64__)

#include <immintrin.h>

#define LANES 8

__attribute__((target("avx,f16c")))
static uint64_t widen_fast(float *restrict to, const uint16_t *restrict from, uint64_t n)
{
    uint64_t i = 0;
    for (; hbm_cpu.f16c && i + LANES <= n; i += LANES)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    return i;
}

__attribute__((target("avx,f16c")))
static uint64_t narrow_fast(uint16_t *restrict to, const float *restrict from, uint64_t n)
{
    uint64_t i = 0;
    for (; hbm_cpu.f16c && i + LANES <= n; i += LANES)
        _mm_storeu_si128((__m128i *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}

#elif defined(__aarch64__) /* every such CPU has the instruction */

static uint64_t widen_fast(float *restrict to, const uint16_t *restrict from, uint64_t n)
{
    const __fp16 *halves = (const void *)from;
    for (uint64_t i = 0; i < n; i++)
        to[i] = halves[i];
    return n;
}

static uint64_t narrow_fast(uint16_t *restrict to, const float *restrict from, uint64_t n)
{
    __fp16 *halves = (void *)to;
    for (uint64_t i = 0; i < n; i++)
        halves[i] = (__fp16)from[i];
    return n;
}

#else

static uint64_t widen_fast(float *to, const uint16_t *from, uint64_t n)
{
    (void)to, (void)from, (void)n;
    return 0;
}

static uint64_t narrow_fast(uint16_t *to, const float *from, uint64_t n)
{
    (void)to, (void)from, (void)n;
    return 0;
}

#endif

void hbm_widen_float16(float *restrict to, const uint16_t *restrict from, uint64_t n)
{
    for (uint64_t i = widen_fast(to, from, n); i < n; i++)
        to[i] = widen16(from[i]);
}

void hbm_narrow_float16(uint16_t *restrict to, const float *restrict from, uint64_t n)
{
    for (uint64_t i = narrow_fast(to, from, n); i < n; i++)
        to[i] = narrow16(from[i]);
}

HBM_VECTOR void hbm_widen_bfloat16(float *restrict to, const uint16_t *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = as_float((uint32_t)from[i] << 16);
}

HBM_VECTOR void hbm_narrow_bfloat16(uint16_t *restrict to, const float *restrict from, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        to[i] = narrow_b16(from[i]);
}
