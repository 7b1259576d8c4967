/* Threads as ranks, random numbers that all of them share, and the choice of a test.

   Segments are mapped as those of processes are, so that forked ranks may have them too. */
#include "core_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

unsigned char *new_segment(void)
{
    void *room = mmap(NULL, HEAP_OFFSET + HEAP_BYTES, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED, "no memory for a segment");
    return room;
}

hbm_comm *opened(group g, int rank, int lock, const uintptr_t *claims,
                 unsigned char *const *segments)
{
    uintptr_t addresses[MOST_RANKS];
    int32_t nodes[MOST_RANKS];
    for (int r = 0; r < g.size; r++) {
        addresses[r] = (uintptr_t)segments[r];
        nodes[r] = g.two_nodes & r;
    }
    hbm_setup setup = {.rank = rank, .size = g.size, .oversubscribed = g.oversubscribed,
                       .lock = lock, .cache_bytes = g.cache_bytes,
                       .segment_bytes = HEAP_OFFSET + HEAP_BYTES, .segments = addresses,
                       .nodes = nodes, .claims = claims, .boot = BOOT};
    hbm_comm *comm = hbm_open(&setup);
    CHECK(comm, "hbm_open refused rank %d of %d", rank, g.size);
    return comm;
}

typedef struct {
    member me;
    void (*body)(member *);
} start;

static void *begin(void *argument)
{
    start *s = argument;
    s->body(&s->me);
    return NULL;
}

/* Runs `body` once per rank, each in a thread of its own, and waits for all of them. */
void as_ranks(group g, void (*body)(member *), void *shared)
{
    unsigned char *segments[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    start starts[MOST_RANKS];
    for (int r = 0; r < g.size; r++)
        segments[r] = new_segment();
    for (int r = 0; r < g.size; r++) {
        member me = {g, r, opened(g, r, -1, NULL, segments), segments[r] + HEAP_OFFSET, shared};
        starts[r] = (start){me, body};
    }
    for (int r = 0; r < g.size; r++)
        CHECK(!pthread_create(&threads[r], NULL, begin, &starts[r]), "no thread");
    for (int r = 0; r < g.size; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < g.size; r++) {
        hbm_close(starts[r].me.comm);
        hbm_free(starts[r].me.comm);
    }
    for (int r = 0; r < g.size; r++)
        munmap(segments[r], HEAP_OFFSET + HEAP_BYTES);
}

void sleep_ms(double ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1e3),
                         .tv_nsec = (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    nanosleep(&t, NULL);
}

double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* splitmix64 */
uint64_t mixed(uint64_t value)
{
    value += 0x9E3779B97F4A7C15u;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9u;
    value = (value ^ value >> 27) * 0x94D049BB133111EBu;
    return value ^ value >> 31;
}

uint64_t roll(dice *d, uint64_t sides) { return mixed(d->state++) % sides; }

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*test)(uint64_t seed, double seconds);
    } tests[] = {
        {"random_calls", test_random_calls}, {"halves", test_halves},
        {"mismatch", test_mismatch},         {"closed", test_closed},
        {"interrupted", test_interrupted},   {"sleep", test_sleep},
        {"busy", test_busy},                 {"refused", test_refused},
        {"died", test_died},                 {"halfway", test_halfway},
        {"folds", test_folds},               {"claims", test_claims},
        {"claims_and_forks", test_claims_and_forks},
        {"died_with_claim", test_died_with_claim},
        {"links", test_links},               {"kills", test_kills},
        {"heap", test_heap},                 {"heap_threads", test_heap_threads},
        {"heap_forks", test_heap_forks},     {"handler", test_handler},
        {"departures", test_departures},
    };
    CHECK(argc == 4, "usage: %s TEST SEED SECONDS", argv[0]);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].test(strtoull(argv[2], NULL, 10), strtod(argv[3], NULL));
            return 0;
        }
    CHECK(0, "no test is called %s", argv[1]);
}
