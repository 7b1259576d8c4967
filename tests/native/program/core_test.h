/* The parts of the core's test program: threads as ranks, a naive reference, the tests. */
#ifndef HBMCOMM_CORE_TEST_H
#define HBMCOMM_CORE_TEST_H

#include "comm/comm.h"
#include "kernels/reduction.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_RANKS 128
#define FEW_RANKS 5
#define HEAP_BYTES (16 * 1024 * 1024)
#define BOOT 6717u
#define UNUSED __attribute__((unused))

/* Ends the program at once: ranks that failed leave others waiting. */
#define CHECK(condition, ...)                               \
    do {                                                    \
        if (!(condition)) {                                 \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
            fprintf(stderr, __VA_ARGS__);                   \
            fputc('\n', stderr);                            \
            _Exit(1);                                       \
        }                                                   \
    } while (0)

/* ranks.c */

/* The place of a rank's CPU, on a machine that a test describes. */
typedef struct {
    int package, node, cache;
} spot;

typedef spot (*machine)(int rank);

typedef struct {
    int size, oversubscribed;
    uint64_t cache_bytes;
    machine machine;      /* NULL: all CPUs alike */
    int reads_private;    /* ranks may read each other's private memory */
    int fan_in;           /* 0: the default */
    uint64_t piece_bytes; /* 0: the default */
    int crowded;          /* fewer CPUs than threads: these yield, and nothing else changes */
    const int *host_of;   /* of each rank; NULL: all ranks share memory */
    int leaders, algorithm;
    int only_waits;       /* the wire between hosts cannot test */
} group;

typedef struct {
    group g;
    int rank;
    hbm_comm *comm;
    unsigned char *heap; /* the arena arrays of this rank */
    void *shared;        /* from the test, for all ranks */
} member;

/* The memory that one rank shares. */
typedef struct {
    unsigned char *memory;
    hbm_heap *heap;
} segment;

void as_ranks(group g, void (*body)(member *), void *shared);
segment new_segment(void);
void end_segment(segment s);
hbm_comm *opened(group g, int rank, const uintptr_t *claims, const segment *segments);
spot odd_and_even(int rank); /* two nodes */

/* queues.c: a wire between threads */
typedef struct world world;
world *new_world(int only_waits, uint64_t seed);
hbm_wire wire_of(world *w, int rank);
void end_world(world *w);

/* machines.c: one rank for each core */
typedef struct {
    const char *name;
    int cores;
    machine machine;
} described;

extern const described machines[];
extern const int machine_count;
void sleep_ms(double ms);
double seconds_now(void);

/* Random numbers: equal for equal seeds, on every rank. */
typedef struct {
    uint64_t state;
} dice;

uint64_t mixed(uint64_t value);
uint64_t roll(dice *d, uint64_t sides);

/* reference.c: the input and the expected output of a call. `seed` decides contents and lengths. */
typedef struct {
    uint64_t first, count; /* entries */
} span;

int differs_in_length(const hbm_call *call);
span sent_to(const hbm_call *call, uint64_t seed, int rank, int to);
span received_from(const hbm_call *call, uint64_t seed, int rank, int from);
uint64_t entries_between(const hbm_call *call, uint64_t seed, int from, int to);
uint64_t entries_sent(const hbm_call *call, uint64_t seed, int size, int rank);
uint64_t entries_received(const hbm_call *call, uint64_t seed, int size, int rank);
void fill_input(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
void expect_output(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
int same_output(const hbm_call *call, const void *output, const void *expected, uint64_t entries);
extern int only_exact_values; /* then sums and products do not depend on their order */
float half_to_float(int dtype, uint16_t half);
uint16_t half_from_float(int dtype, float value);

/* kernels.c */
void with_fewer_extensions(void (*test)(uint64_t), uint64_t seed);

/* groups.c */
void describe(const described *m, int size, hbm_peer *peers);

/* random_calls.c */
void random_sequence(group g, uint64_t seed);

/* The tests, which main() runs by name. */
#ifdef HBM_COUNTERS
#define COUNTING_TESTS(T) T(costs) T(events)
#else
#define COUNTING_TESTS(T)
#endif
#define TESTS(T)                                                                              \
    T(random_calls) T(many_ranks) T(mismatch) T(closed) T(interrupted) T(halfway)             \
    T(sleep) T(flags) T(busy) T(refused) T(intruder) T(died) T(departures) T(claims)          \
    T(claims_and_forks) T(kills) T(heap) T(heap_threads) T(heap_forks) T(handler)             \
    T(reductions) T(kernels) T(halves) T(links) T(groups) T(rates) T(optimizers) T(updates)   \
    T(leaving) T(held) T(many_in_flight) T(numbers) T(sleepers) T(mpi_threads) T(watched)     \
    T(forks) T(refusals) T(offers) T(failing) T(steps) T(hosts) T(lost) T(pushes) T(hooks)    \
    COUNTING_TESTS(T)
#define DECLARE_TEST(name) void test_##name(uint64_t seed, double seconds);
TESTS(DECLARE_TEST)

#endif
