/* The kernels alone: streaming copies, and reductions of every dtype, operation, number of inputs
   and length up to LENGTHS, at every offset in a line; with all vector extensions of the CPU and
   with fewer. */
#include "core_test.h"
#include "kernels/vector.h"

#define LENGTHS 200 /* entries: several vectors and a remainder */
#define SHIFTS 7    /* entries before the first that is reduced */
#define MOST_INPUTS 9
#define MOST_BYTES ((LENGTHS + SHIFTS + MOST_INPUTS) * 2 * sizeof(long double))
#define UNTOUCHED 0xa5

/* Runs a test with all extensions of the CPU, with some, and with none, where these differ. */
void with_fewer_extensions(void (*test)(uint64_t), uint64_t seed)
{
    hbm_extensions available = hbm_cpu;
    test(seed);
    if (available.avx512f) {
        hbm_cpu.avx512f = 0;
        test(seed);
    }
    if (available.avx || available.f16c || available.long_sve) {
        hbm_cpu = (hbm_extensions){.avx = 0};
        test(seed);
    }
    hbm_cpu = available;
}

/* Whether all bytes are UNTOUCHED: the first is, and each equals the next. */
static int are_untouched(const unsigned char *bytes, uint64_t n)
{
    return !n || (bytes[0] == UNTOUCHED && !memcmp(bytes, bytes + 1, n - 1));
}

typedef void (*copying)(void *to, const void *from, uint64_t bytes);

static void check_copy(copying copy, const unsigned char *in, unsigned char *out, uint64_t room,
                       uint64_t head, uint64_t bytes)
{
    memset(out, UNTOUCHED, room);
    copy(out + head, in, bytes);
    hbm_stream_end();
    CHECK(!memcmp(out + head, in, bytes), "%llu bytes at %llu differ", (unsigned long long)bytes,
          (unsigned long long)head);
    CHECK(are_untouched(out, head) && are_untouched(out + head + bytes, room - head - bytes),
          "%llu bytes at %llu: another byte was written", (unsigned long long)bytes,
          (unsigned long long)head);
}

static void check_copies(uint64_t seed)
{
    enum { ROOM = 5 * TURN_SPAN };
    unsigned char *in = malloc(ROOM), *out = aligned_alloc(LINE, ROOM);
    dice d = {seed};
    for (int i = 0; i < ROOM; i++)
        in[i] = (unsigned char)mixed(d.state++);
    for (uint64_t bytes = 0; bytes <= LENGTHS; bytes++)
        for (uint64_t head = 0; head < LINE; head += 1 + roll(&d, 4))
            check_copy(hbm_stream, in + roll(&d, LINE), out, 5 * LINE, head, bytes);
    for (int i = 0; i < 100; i++)
        check_copy(i % 2 ? hbm_stream : hbm_copy_in_turn, in + roll(&d, LINE), out, ROOM,
                   roll(&d, LINE), roll(&d, ROOM - 2 * LINE));
    free(in);
    free(out);
}

/* Reduces entries [first, first + n) into two outputs; nothing else is written there. */
static void check_part(const hbm_call *call, const void *const *in, int inputs,
                       unsigned char *const *out, const unsigned char *expected, uint64_t first,
                       uint64_t n, int how)
{
    uint64_t size = hbm_dtype_size(call->dtype), all = (LENGTHS + SHIFTS) * size;
    uint64_t from = first * size, end = from + n * size;
    for (int o = 0; o < 2; o++)
        memset(out[o], UNTOUCHED, all);
    CHECK(hbm_combine(call, in, inputs, (void *const *)out, 2, from, n * size, how) == HBM_OK,
          "not reduced");
    hbm_stream_end();
    for (int o = 0; o < 2; o++) {
        CHECK(same_output(call, out[o] + from, expected + from, n),
              "reduction %d of %d x %llu x dtype %d from %llu, way %d", call->reduction, inputs,
              (unsigned long long)n, call->dtype, (unsigned long long)first, how);
        CHECK(are_untouched(out[o], from) && are_untouched(out[o] + end, all - end),
              "reduction %d of %d x %llu x dtype %d wrote elsewhere", call->reduction, inputs,
              (unsigned long long)n, call->dtype);
    }
}

/* Arrays begin at different offsets in their lines: array r begins r entries after a line. */
static void check_lengths(hbm_call call, int inputs, unsigned char *const *memory)
{
    uint64_t size = hbm_dtype_size(call.dtype);
    unsigned char *expected = memory[MOST_INPUTS], *out[2];
    const void *in[MOST_INPUTS];
    call.count = LENGTHS + SHIFTS;
    for (int r = 0; r < inputs; r++) {
        in[r] = memory[r] + (uint64_t)r * size;
        fill_input(&call, call.count, inputs, r, memory[r] + (uint64_t)r * size);
    }
    for (int o = 0; o < 2; o++)
        out[o] = memory[MOST_INPUTS + 1 + o] + (uint64_t)(inputs - 1 + o) % MOST_INPUTS * size;
    expect_output(&call, call.count, inputs, 0, expected);
    for (uint64_t n = 0; n <= LENGTHS; n++)
        check_part(&call, in, inputs, out, expected, n % (SHIFTS + 1), n,
                   (n + n / 64) % 2 ? STREAMING : IN_ORDER);
}

static void check_reductions(UNUSED uint64_t seed)
{
    unsigned char *memory[MOST_INPUTS + 3];
    for (int i = 0; i < MOST_INPUTS + 3; i++)
        memory[i] = aligned_alloc(LINE, (MOST_BYTES + LINE - 1) / LINE * LINE);
    for (uint8_t dtype = 0; dtype < HBM_DTYPES; dtype++)
        for (uint8_t reduction = 0; reduction < HBM_REDUCTIONS; reduction++)
            for (int inputs = 1; inputs <= MOST_INPUTS && hbm_reduces(dtype, reduction); inputs++)
                check_lengths((hbm_call){.operation = HBM_ALLREDUCE, .dtype = dtype,
                                         .reduction = reduction}, inputs, memory);
    for (int i = 0; i < MOST_INPUTS + 3; i++)
        free(memory[i]);
}

void test_kernels(uint64_t seed, UNUSED double seconds)
{
    with_fewer_extensions(check_copies, seed);
    with_fewer_extensions(check_reductions, seed);
}
