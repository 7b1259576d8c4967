/* Reduces the same range of several inputs into one or more outputs, in the order of the inputs.

   Works in chunks that stay in the first-level cache, so that every input is read once from memory
   and every output written once. An output may be one of the inputs.

   Chunks are shorter where outputs are streamed: then reads overlap with streaming stores. A chunk
   may end inside a line of an output. That line is streamed with the next chunk, because a line
   written in two parts is read from memory first.

   Ordering is the caller's: it has synchronised with the ranks that wrote the inputs, and it
   signals the outputs afterwards. */
#include "kernels/reduction.h"

#include <stdlib.h>

#include "kernels/dtype.h"
#include "kernels/half.h"
#include "kernels/reduce_kernels.h"
#include "kernels/vector.h"

#define CHUNK 8192   /* bytes */
#define GRANULE 1024 /* bytes of a chunk that is streamed, or of halves */

_Static_assert(GRANULE % (2 * sizeof(long double)) == 0, "no entry may cross two chunks");
_Static_assert(TURN_STEP == GRANULE, "scratch buffers hold this much of halves");

static hbm_kernel kernel_of(int dtype, int reduction)
{
#if defined(__aarch64__)
    if (hbm_cpu.long_sve)
        return hbm_kernels_sve[dtype][reduction];
#endif
    return hbm_kernels[dtype][reduction];
}

int hbm_reduces(int dtype, int reduction)
{
    return dtype >= 0 && dtype < HBM_DTYPES && reduction >= 0 && reduction < HBM_REDUCTIONS
           && hbm_kernels[dtype][reduction] != NULL;
}

static int is_half(const hbm_call *call)
{
    return call->dtype == HBM_FLOAT16 || call->dtype == HBM_BFLOAT16;
}

static void widen(int dtype, float *to, const uint16_t *from, uint64_t n)
{
    if (dtype == HBM_FLOAT16)
        hbm_widen_float16(to, from, n);
    else
        hbm_widen_bfloat16(to, from, n);
}

static void narrow(int dtype, uint16_t *to, const float *from, uint64_t n)
{
    if (dtype == HBM_FLOAT16)
        hbm_narrow_float16(to, from, n);
    else
        hbm_narrow_bfloat16(to, from, n);
}

/* Halves, at most one granule: intermediate results are floats, and are rounded once. */
static void reduce_halves(const hbm_call *call, hbm_kernel kernel, const void *const *in, int ins,
                          uint64_t at, uint64_t n, void *result)
{
    float wide[KERNEL_INS][GRANULE / sizeof(uint16_t)];
    const void *some[KERNEL_INS] = {wide[0], wide[1], wide[2], wide[3]};
    widen(call->dtype, wide[0], (const uint16_t *)((const char *)in[0] + at), n);
    for (int next = 1; next < ins;) {
        int k = 1;
        for (; k < KERNEL_INS && next < ins; k++, next++)
            widen(call->dtype, wide[k], (const uint16_t *)((const char *)in[next] + at), n);
        kernel(wide[0], some, k, n);
    }
    narrow(call->dtype, result, wide[0], n);
}

/* (a op b) op c and so on: each kernel's result is the first input of the next kernel. */
static void reduce_others(hbm_kernel kernel, const void *const *in, int ins, uint64_t at,
                          uint64_t n, char *scratch, char *result)
{
    const void *some[KERNEL_INS] = {(const char *)in[0] + at};
    for (int next = 1; next < ins;) {
        int k = 1;
        for (; k < KERNEL_INS && next < ins; k++, next++)
            some[k] = (const char *)in[next] + at;
        kernel(next < ins ? scratch : result, some, k, n);
        some[0] = scratch;
    }
}

/* A function of the program gets the whole range in one call: a call of it may be slow. */
static int combine_by_user(const hbm_call *call, const void *const *in, int ins, void *const *out,
                           int outs, uint64_t at, uint64_t bytes)
{
    if (!bytes)
        return HBM_OK;
    void *result = malloc(bytes);
    int status = result ? HBM_OK : HBM_NO_MEMORY;
    if (!status)
        memcpy(result, (const char *)in[ins - 1] + at, bytes);
    /* it computes b = a op b; going from last to first keeps the order of the operands */
    uint64_t n = bytes / call->entry_bytes;
    for (int p = ins - 2; p >= 0 && !status; p--)
        if (call->reduce(call->function, (const char *)in[p] + at, result, n))
            status = HBM_INTERRUPTED;
    for (int o = 0; o < outs && !status; o++)
        memcpy((char *)out[o] + at, result, bytes);
    free(result);
    return status;
}

static void reduce_chunk(const hbm_call *call, const void *const *in, int ins, uint64_t at,
                         uint64_t bytes, char *result)
{
    hbm_kernel kernel = kernel_of(call->dtype, call->reduction);
    uint64_t n = bytes / hbm_dtype_size(call->dtype);
    _Alignas(LINE) char scratch[CHUNK];
    if (is_half(call))
        reduce_halves(call, kernel, in, ins, at, n, result);
    else
        reduce_others(kernel, in, ins, at, n, scratch, result);
}

static void combine_chunk(const hbm_call *call, const void *const *in, int ins, void *const *out,
                          int outs, uint64_t at, uint64_t bytes)
{
    char *result = (char *)(ins == 1 ? in[0] : out[0]) + at;
    if (ins > 1)
        reduce_chunk(call, in, ins, at, bytes, result);
    for (int o = 0; o < outs; o++)
        hbm_copy((char *)out[o] + at, result, bytes);
}

static void combine_streaming(const hbm_call *call, const void *const *in, int ins,
                              void *const *out, int outs, uint64_t offset, uint64_t n)
{
    _Alignas(LINE) char kept[LINE + GRANULE]; /* the end of the last chunk, and this chunk */
    char *result = kept + LINE;
    for (uint64_t done = 0, bytes; done < n; done += bytes) {
        uint64_t at = offset + done;
        bytes = n - done < GRANULE ? n - done : GRANULE;
        if (done)
            memcpy(kept, kept + GRANULE, LINE);
        reduce_chunk(call, in, ins, at, bytes, result);
        for (int o = 0; o < outs; o++) {
            char *to = (char *)out[o] + at;
            uint64_t before = done ? (uintptr_t)to % LINE : 0;
            uint64_t after = done + bytes < n ? (uintptr_t)(to + bytes) % LINE : 0;
            hbm_stream(to - before, result - before, before + bytes - after);
        }
    }
}

int hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                uint64_t offset, uint64_t n, int how)
{
    if (call->reduction == HBM_USER)
        return combine_by_user(call, in, ins, out, outs, offset, n);
    if (how == STREAMING && ins > 1) {
        combine_streaming(call, in, ins, out, outs, offset, n);
        return HBM_OK;
    }
    uint64_t most = is_half(call) ? GRANULE : CHUNK;
    uint64_t turns = how == IN_TURN ? n / TURN_SPAN * (TURN_SPAN / TURN_STEP) : 0;
    for (uint64_t i = 0; i < turns; i++)
        combine_chunk(call, in, ins, out, outs, offset + in_turn(i), TURN_STEP);
    for (uint64_t done = turns * TURN_STEP, bytes; done < n; done += bytes) {
        bytes = n - done < most ? n - done : most;
        combine_chunk(call, in, ins, out, outs, offset + done, bytes);
    }
    return HBM_OK;
}

int hbm_fold(const hbm_call *call, const void *const *in, int ins, void *out)
{
    uint64_t bytes = call->count * entry_bytes(call);
    return hbm_combine(call, in, ins, &out, 1, 0, bytes, IN_ORDER);
}
