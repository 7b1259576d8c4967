/* Copies through the cache, and past it for data that does not fit there.

   memcpy adapts to the CPU by itself. Streaming stores are as wide as the CPU allows, chosen at run
   time.

   Ordering: a release store does not order x86's streaming stores, so hbm_stream_end() fences them
   before the step that signals them. arm64 orders them like other stores. */
#include "kernels/copy.h"
#include "kernels/vector.h"

#include <string.h>

#define HALF 4096 /* bytes: a page, at the end of which CPUs stop prefetching */

void hbm_copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes)
        memcpy(to, from, bytes);
}


void hbm_copy_in_turn(void *to, const void *from, uint64_t bytes)
{
    /* volatile, because compilers replace calls of this length with a slow instruction */
    static void *(*const volatile copy)(void *, const void *, size_t) = memcpy;
    char *out = to;
    const char *in = from;
    uint64_t turns = bytes / TURN_SPAN * (TURN_SPAN / TURN_STEP), done = turns * TURN_STEP;
    for (uint64_t i = 0; i < turns; i++)
        copy(out + in_turn(i), in + in_turn(i), TURN_STEP);
    hbm_copy(out + done, in + done, bytes - done);
}

/* Each of these streams two ranges of whole lines in turn, the second `apart` bytes after the
   first: the CPU prefetches both. `out` is at the beginning of a line. */

#if defined(__x86_64__)

#include <immintrin.h>

__attribute__((target("avx512f")))
static void stream_by_64(char *out, const char *in, uint64_t apart)
{
    for (const char *end = in + apart; in < end; in += LINE, out += LINE) {
        __m512i a = _mm512_loadu_si512(in), b = _mm512_loadu_si512(in + apart);
        _mm512_stream_si512((__m512i *)out, a);
        _mm512_stream_si512((__m512i *)(out + apart), b);
    }
}

__attribute__((target("avx")))
static void stream_by_32(char *out, const char *in, uint64_t apart)
{
    for (const char *end = in + apart; in < end; in += LINE, out += LINE) {
        __m256i a = _mm256_loadu_si256((const __m256i *)in);
        __m256i b = _mm256_loadu_si256((const __m256i *)in + 1);
        __m256i c = _mm256_loadu_si256((const __m256i *)(in + apart));
        __m256i d = _mm256_loadu_si256((const __m256i *)(in + apart) + 1);
        _mm256_stream_si256((__m256i *)out, a);
        _mm256_stream_si256((__m256i *)out + 1, b);
        _mm256_stream_si256((__m256i *)(out + apart), c);
        _mm256_stream_si256((__m256i *)(out + apart) + 1, d);
    }
}

static void stream_by_16(char *out, const char *in, uint64_t apart)
{
    for (const char *end = in + apart; in < end; in += LINE, out += LINE)
        for (uint64_t second = 0; second <= apart; second += apart)
            for (uint64_t i = 0; i < LINE; i += sizeof(__m128i))
                _mm_stream_si128((__m128i *)(out + second + i),
                                 _mm_loadu_si128((const __m128i *)(in + second + i)));
}

static void stream(char *out, const char *in, uint64_t apart)
{
    if (hbm_cpu.avx512f)
        stream_by_64(out, in, apart);
    else if (hbm_cpu.avx)
        stream_by_32(out, in, apart);
    else
        stream_by_16(out, in, apart);
}

void hbm_stream_end(void) { _mm_sfence(); }

#elif defined(__aarch64__)

static void stream(char *out, const char *in, uint64_t apart)
{
    for (const char *end = in + apart; in < end; in += LINE, out += LINE)
        __asm__ volatile("ldp q0, q1, [%1]\n\tldp q2, q3, [%1, 32]\n\t"
                         "ldp q4, q5, [%3]\n\tldp q6, q7, [%3, 32]\n\t"
                         "stnp q0, q1, [%0]\n\tstnp q2, q3, [%0, 32]\n\t"
                         "stnp q4, q5, [%2]\n\tstnp q6, q7, [%2, 32]"
                         :: "r"(out), "r"(in), "r"(out + apart), "r"(in + apart)
                         : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "memory");
}

void hbm_stream_end(void) {}

#else

static void stream(char *out, const char *in, uint64_t apart) { memcpy(out, in, 2 * apart); }
void hbm_stream_end(void) {}

#endif

void hbm_stream(void *to, const void *from, uint64_t bytes)
{
    char *out = to;
    const char *in = from;
    if (out == in || !bytes)
        return;
    uint64_t head = -(uintptr_t)out % LINE;
    if (head > bytes)
        head = bytes;
    memcpy(out, in, head);
    out += head, in += head, bytes -= head;
    for (uint64_t half; bytes >= 2 * LINE; out += 2 * half, in += 2 * half, bytes -= 2 * half) {
        half = bytes < 2 * HALF ? bytes / (2 * LINE) * LINE : HALF;
        stream(out, in, half);
    }
    memcpy(out, in, bytes);
}

/* Copies data that was received without gaps into entries with gaps. It touches arrays of this rank
   alone, after the call that received them, so it needs no ordering. */
static void unpack(const hbm_unpacking *u)
{
    const char *from = (const char *)u->from;
    for (uint64_t e = 0; e < u->entries; e++)
        for (uint64_t r = 0; r < u->run_count; r++) {
            memcpy((char *)u->to + e * u->extent + u->runs[r].offset, from, u->runs[r].bytes);
            from += u->runs[r].bytes;
        }
}

void hbm_unpack(const hbm_call *call)
{
    for (uint64_t i = 0; i < call->after_count; i++)
        unpack(&call->after[i]);
}
