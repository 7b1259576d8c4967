/* What the files of the core's test program share: threads as ranks, a naive reference, the tests. */
#ifndef HBMCOMM_CORE_TEST_H
#define HBMCOMM_CORE_TEST_H

#include "core.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef MOST_RANKS
#define MOST_RANKS 5
#endif
#define HEAP_BYTES (8 * 1024 * 1024)
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
typedef struct {
    int size, oversubscribed;
    uint64_t cache_bytes;
    int two_nodes; /* odd ranks on the other node */
} group;

typedef struct {
    group g;
    int rank;
    hbm_comm *comm;
    unsigned char *heap; /* where arena arrays of this rank lie */
    void *shared;        /* what the test gave to all ranks */
} member;

void as_ranks(group g, void (*body)(member *), void *shared);
hbm_comm *opened(group g, int rank, int lock, const uintptr_t *claims,
                 unsigned char *const *segments);
unsigned char *new_segment(void);
void sleep_ms(double ms);
double seconds_now(void);

/* The same numbers from the same seed, on every rank. */
typedef struct {
    uint64_t state;
} dice;

uint64_t mixed(uint64_t value);
uint64_t roll(dice *d, uint64_t sides);

/* reference.c: what a call sends and what it must give. `seed` decides the contents. */
uint64_t blocks_sent(const hbm_call *call, int size, int rank);
uint64_t blocks_received(const hbm_call *call, int size, int rank);
void fill_input(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
void expect_output(const hbm_call *call, uint64_t seed, int size, int rank, void *to);
int same_output(const hbm_call *call, const void *found, const void *expected, uint64_t entries);
float half_to_float(int dtype, uint16_t half);
uint16_t half_from_float(int dtype, float value);

/* The tests, by the names of which main() runs them. */
void test_random_calls(uint64_t seed, double seconds);
void test_halves(uint64_t seed, double seconds);
void test_links(uint64_t seed, double seconds);
void test_folds(uint64_t seed, double seconds);
void test_mismatch(uint64_t seed, double seconds);
void test_closed(uint64_t seed, double seconds);
void test_interrupted(uint64_t seed, double seconds);
void test_halfway(uint64_t seed, double seconds);
void test_sleep(uint64_t seed, double seconds);
void test_busy(uint64_t seed, double seconds);
void test_refused(uint64_t seed, double seconds);
void test_died(uint64_t seed, double seconds);
void test_died_with_claim(uint64_t seed, double seconds);
void test_claims(uint64_t seed, double seconds);
void test_kills(uint64_t seed, double seconds);
void test_claims_and_forks(uint64_t seed, double seconds);
void test_heap(uint64_t seed, double seconds);
void test_heap_threads(uint64_t seed, double seconds);
void test_heap_forks(uint64_t seed, double seconds);
void test_handler(uint64_t seed, double seconds);
void test_departures(uint64_t seed, double seconds);

#endif
