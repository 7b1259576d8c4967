/* What the files of the core's test program share: threads as ranks, a naive reference, the tests. */
#ifndef HBMCOMM_CORE_TEST_H
#define HBMCOMM_CORE_TEST_H

#include "comm.h"

#include <stdio.h>
#include <stdlib.h>

#define MOST_RANKS 128
#define FEW_RANKS 5
#define HEAP_BYTES (16 * 1024 * 1024)
#define BOOT 6717u

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

/* Where the CPU of a rank is, on a machine that a test describes. */
typedef struct {
    int package, node, cache;
} spot;

typedef spot (*machine)(int rank, int size);

typedef struct {
    int size, oversubscribed;
    uint64_t cache_bytes;
    machine machine;      /* NULL: all CPUs alike */
    int reads_private;    /* ranks may read each other's private memory */
    int fan_in;           /* 0: the default */
    int crowded;          /* threads have no CPU each: they give way, though nothing else changes */
} group;

typedef struct {
    group g;
    int rank;
    hbm_comm *comm;
    unsigned char *heap; /* where arena arrays of this rank lie */
    void *shared;        /* what the test gave to all ranks */
} member;

/* What one rank shares. */
typedef struct {
    unsigned char *memory;
    hbm_heap *heap;
} segment;

void as_ranks(group g, void (*body)(member *), void *shared);
segment new_segment(void);
void end_segment(segment s);
hbm_comm *opened(group g, int rank, const uintptr_t *claims, const segment *segments);
spot odd_and_even(int rank, int size); /* two nodes */

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

/* The same numbers from the same seed, on every rank. */
typedef struct {
    uint64_t state;
} dice;

uint64_t mixed(uint64_t value);
uint64_t roll(dice *d, uint64_t sides);

/* reference.c: what a call sends and what it must give. `seed` decides contents and lengths. */
typedef struct {
    uint64_t first, count; /* entries */
} span;

int differs_in_length(const hbm_call *call);
span sent_to(const hbm_call *call, uint64_t seed, int size, int rank, int to);
span received_from(const hbm_call *call, uint64_t seed, int size, int rank, int from);
uint64_t entries_between(const hbm_call *call, uint64_t seed, int from, int to);
uint64_t entries_sent(const hbm_call *call, uint64_t seed, int size, int rank);
uint64_t entries_received(const hbm_call *call, uint64_t seed, int size, int rank);
void fill_input(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
void expect_output(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
int same_output(const hbm_call *call, const void *found, const void *expected, uint64_t entries);
extern int only_exact_values; /* sums and products do not depend on their order */
float half_to_float(int dtype, uint16_t half);
uint16_t half_from_float(int dtype, float value);

/* kernels.c */
void with_fewer_extensions(void (*test)(uint64_t), uint64_t seed);

/* The tests, by the names of which main() runs them. */
void test_random_calls(uint64_t seed, double seconds);
void test_halves(uint64_t seed, double seconds);
void test_links(uint64_t seed, double seconds);
void test_groups(uint64_t seed, double seconds);
void test_costs(uint64_t seed, double seconds);
void test_events(uint64_t seed, double seconds);
void test_many_ranks(uint64_t seed, double seconds);
void random_sequence(group g, uint64_t seed);
void test_folds(uint64_t seed, double seconds);
void test_kernels(uint64_t seed, double seconds);
void test_mismatch(uint64_t seed, double seconds);
void test_closed(uint64_t seed, double seconds);
void test_interrupted(uint64_t seed, double seconds);
void test_halfway(uint64_t seed, double seconds);
void test_sleep(uint64_t seed, double seconds);
void test_intruder(uint64_t seed, double seconds);
void test_busy(uint64_t seed, double seconds);
void test_refused(uint64_t seed, double seconds);
void test_died(uint64_t seed, double seconds);
void test_claims(uint64_t seed, double seconds);
void test_kills(uint64_t seed, double seconds);
void test_claims_and_forks(uint64_t seed, double seconds);
void test_heap(uint64_t seed, double seconds);
void test_heap_threads(uint64_t seed, double seconds);
void test_heap_forks(uint64_t seed, double seconds);
void test_handler(uint64_t seed, double seconds);
void test_departures(uint64_t seed, double seconds);
void test_rates(uint64_t seed, double seconds);

#endif
