/* Copies: through the cache, and past it for what will not fit there.

   Streaming stores are not ordered by a release store: hbm_stream_end must stand between them and
   the step that tells of them. */
#include "comm.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

void hbm_copy(void *to, const void *from, uint64_t bytes)
{
    if (to != from && bytes)
        memcpy(to, from, bytes);
}

#if defined(__x86_64__)

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
    for (; bytes >= LINE; bytes -= LINE, in += LINE, out += LINE) {
        __m128i a = _mm_loadu_si128((const __m128i *)in);
        __m128i b = _mm_loadu_si128((const __m128i *)in + 1);
        __m128i c = _mm_loadu_si128((const __m128i *)in + 2);
        __m128i d = _mm_loadu_si128((const __m128i *)in + 3);
        _mm_stream_si128((__m128i *)out, a);
        _mm_stream_si128((__m128i *)out + 1, b);
        _mm_stream_si128((__m128i *)out + 2, c);
        _mm_stream_si128((__m128i *)out + 3, d);
    }
    memcpy(out, in, bytes);
}

void hbm_stream_end(void) { _mm_sfence(); }

#else

void hbm_stream(void *to, const void *from, uint64_t bytes) { hbm_copy(to, from, bytes); }
void hbm_stream_end(void) {}

#endif
