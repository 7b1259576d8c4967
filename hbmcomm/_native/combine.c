/* Reduces the same stretch of several inputs into one or more outputs, in the order of the ranks.

   Works in chunks that stay in the first-level cache, so that every input is read once and every
   output written once. They are short where outputs are streamed: then reads and streaming stores
   overlap. An output may be one of the inputs. */
#include "comm.h"

#include <stdlib.h>

#define CHUNK 8192   /* bytes */
#define GRANULE 1024 /* of what is streamed, and of halves */

_Static_assert(GRANULE % (2 * sizeof(long double)) == 0, "no entry may lie across two chunks");
_Static_assert(TURN_STEP == GRANULE, "scratch room is for this much of halves");

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

/* Halves, as many as a line of the buffers holds: the sum is kept in float and rounded once. */
static void fold_halves(const hbm_call *call, hbm_folding fold, const void *const *in, int ins,
                        uint64_t at, uint64_t n, void *result)
{
    float wide[FOLD_INS][GRANULE / sizeof(uint16_t)];
    const void *some[FOLD_INS] = {wide[0], wide[1], wide[2], wide[3]};
    widen(call->dtype, wide[0], (const uint16_t *)((const char *)in[0] + at), n);
    for (int next = 1; next < ins;) {
        int k = 1;
        for (; k < FOLD_INS && next < ins; k++, next++)
            widen(call->dtype, wide[k], (const uint16_t *)((const char *)in[next] + at), n);
        fold(wide[0], some, k, n);
    }
    narrow(call->dtype, result, wide[0], n);
}

/* (a op b) op c and so on, some inputs at once; what they give is the first of the next. */
static void fold_others(hbm_folding fold, const void *const *in, int ins, uint64_t at, uint64_t n,
                        char *scratch, char *result)
{
    const void *some[FOLD_INS] = {(const char *)in[0] + at};
    for (int next = 1; next < ins;) {
        int k = 1;
        for (; k < FOLD_INS && next < ins; k++, next++)
            some[k] = (const char *)in[next] + at;
        fold(next < ins ? scratch : result, some, k, n);
        some[0] = scratch;
    }
}

/* A function of the program's takes as much at once as there is: a call of it may cost much. */
static int combine_by_user(const hbm_call *call, const void *const *in, int ins, void *const *out,
                           int outs, uint64_t at, uint64_t bytes)
{
    void *result = malloc(bytes + !bytes);
    int status = result ? HBM_OK : HBM_NO_MEMORY;
    if (!status)
        memcpy(result, (const char *)in[ins - 1] + at, bytes);
    /* b becomes a op b: from the last to the first keeps the order of the operands */
    for (int p = ins - 2; p >= 0 && !status; p--)
        if (call->fold(call->function, (const char *)in[p] + at, result, bytes / call->entry_bytes))
            status = HBM_INTERRUPTED;
    for (int o = 0; o < outs && !status; o++)
        memcpy((char *)out[o] + at, result, bytes);
    free(result);
    return status;
}

/* One chunk of all of it. */
static void combine_chunk(const hbm_call *call, const void *const *in, int ins, void *const *out,
                          int outs, uint64_t at, uint64_t bytes, int how)
{
    int streaming = how == STREAMING;
    hbm_folding fold = hbm_folding_of(call->dtype, call->reduction);
    _Alignas(LINE) char scratch[CHUNK], folded[GRANULE];
    char *result = ins == 1 ? (char *)in[0] + at : streaming ? folded : (char *)out[0] + at;
    if (ins > 1 && is_half(call))
        fold_halves(call, fold, in, ins, at, bytes / hbm_dtype_size(call->dtype), result);
    else if (ins > 1)
        fold_others(fold, in, ins, at, bytes / hbm_dtype_size(call->dtype), scratch, result);
    for (int o = 0; o < outs; o++)
        (streaming ? hbm_stream : hbm_copy)((char *)out[o] + at, result, bytes);
}

int hbm_combine(const hbm_call *call, const void *const *in, int ins, void *const *out, int outs,
                uint64_t offset, uint64_t n, int how)
{
    if (call->reduction == HBM_USER)
        return combine_by_user(call, in, ins, out, outs, offset, n);
    uint64_t most = how == STREAMING || is_half(call) ? GRANULE : CHUNK;
    uint64_t turns = how == IN_TURN ? n / TURN_SPAN * (TURN_SPAN / TURN_STEP) : 0;
    for (uint64_t i = 0; i < turns; i++)
        combine_chunk(call, in, ins, out, outs, offset + in_turn(i), TURN_STEP, how);
    for (uint64_t done = turns * TURN_STEP, bytes; done < n; done += bytes) {
        bytes = n - done < most ? n - done : most;
        combine_chunk(call, in, ins, out, outs, offset + done, bytes, how);
    }
    return HBM_OK;
}
