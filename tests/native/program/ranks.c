/* Runs threads as ranks, rolls random numbers for all of them, and chooses a test.

   Segments are shared mappings, so that forked ranks can use them too. */
#include "core_test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/clock.h"

#define ORDINARY_BYTES (16ul * 1024 * 1024) /* a control block, and staging buffers */

static hbm_tuning tuning_of(group g)
{
    uint64_t shorter = g.oversubscribed ? 32768 : 8192;
    return (hbm_tuning){.eager_bytes = g.oversubscribed ? shorter : 2048,
                        .short_bytes = shorter,
                        .fold_bytes = 8192,
                        .fetch_bytes = 128 * 1024, .fetch_idle_bytes = 128 * 1024,
                        .push_bytes = 64 * 1024,
                        .pair_bytes = g.oversubscribed ? 0 : 48 * 1024,
                        .stream_bytes = g.cache_bytes,
                        .piece_bytes = g.piece_bytes ? g.piece_bytes : 256 * 1024,
                        .by_node_bytes = 16 * 1024,
                        .fan_in = g.fan_in ? (uint32_t)g.fan_in : 8,
                        .push_ranks = 8,
                        .spin_ns = g.oversubscribed || g.crowded ? 0 : 50 * 1000,
                        .yield_ns = g.oversubscribed || g.crowded ? 20 * 1000 : 500 * 1000,
                        .nap_ns = 200 * 1000};
}

/* Nothing can be accessed that was not populated. */
static int populate(void *memory, uint64_t start, uint64_t end)
{
    start -= start % PAGE;
    return mprotect((char *)memory + start, end - start, PROT_READ | PROT_WRITE) ? 1 : 0;
}

segment new_segment(void)
{
    unsigned char *memory = mmap(NULL, ORDINARY_BYTES + HEAP_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory for a segment");
    uint64_t half = ORDINARY_BYTES / 2; /* for the control block; the rest is for staging buffers */
    segment s = {memory, hbm_heap_new((uintptr_t)memory + half, ORDINARY_BYTES - half, PAGE)};
    CHECK(s.heap, "no heap");
    CHECK(!mprotect(memory + half, ORDINARY_BYTES - half, PROT_NONE), "no protection");
    hbm_heap_on_grow(s.heap, populate, memory + half);
    return s;
}

void end_segment(segment s)
{
    hbm_heap_delete(s.heap);
    munmap(s.memory, ORDINARY_BYTES + HEAP_BYTES);
}

hbm_comm *opened(group g, int rank, const uintptr_t *claims, const segment *segments)
{
    hbm_peer peers[MOST_RANKS];
    hbm_setup setup = {.rank = rank, .size = g.size, .oversubscribed = g.oversubscribed,
                       .peers = peers, .staging = segments[rank].heap, .tuning = tuning_of(g),
                       .boot = BOOT};
    CHECK(hbm_control_bytes(g.size) <= ORDINARY_BYTES / 2, "no room for a control block");
    for (int r = 0; r < g.size; r++) {
        uintptr_t memory = (uintptr_t)segments[r].memory;
        spot at = g.machine ? g.machine(r) : (spot){0, 0, 0};
        peers[r] = (hbm_peer){.control = memory,
                              .ordinary = memory + ORDINARY_BYTES / 2,
                              .ordinary_bytes = ORDINARY_BYTES / 2,
                              .arrays = memory + ORDINARY_BYTES,
                              .array_bytes = HEAP_BYTES,
                              .claim = claims ? claims[r] : 0,
                              .pid = g.reads_private ? getpid() : 0,
                              .package = at.package,
                              .node = at.node,
                              .cache = at.cache};
    }
    hbm_comm *comm = hbm_open(&setup);
    CHECK(comm, "hbm_open refused rank %d of %d", rank, g.size);
    return comm;
}

spot odd_and_even(int rank)
{
    return (spot){0, rank % 2, rank % 2};
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

/* Opens the communicator of all ranks: those of a host share memory, and messages go between hosts. */
static hbm_comm *opened_on_hosts(group g, int rank, const segment *segments, world *w,
                                 hbm_comm **inside)
{
    segment here[MOST_RANKS];
    int leading[MOST_RANKS], hosts = 0, index = 0, n = 0, at = 0;
    for (int r = 0; r < g.size; r++) {
        hosts = g.host_of[r] >= hosts ? g.host_of[r] + 1 : hosts;
        if (g.host_of[r] != g.host_of[rank])
            continue;
        index = r == rank ? n : index;
        here[n++] = segments[r];
    }
    for (int host = 0; host < hosts; host++)
        for (int r = 0; r < g.size; r++)
            if (g.host_of[r] == host)
                leading[at++] = r;
    group of_host = g;
    of_host.size = n;
    *inside = opened(of_host, index, NULL, here);
    hbm_hosts_setup setup = {.rank = rank, .ranks = g.size, .hosts = hosts, .leaders = g.leaders,
                             .algorithm = g.algorithm, .news = -1, .longest = 1024,
                             .host_of = g.host_of, .leading = leading};
    hbm_wire wire = wire_of(w, rank);
    hbm_comm *comm = hbm_open_hosts(*inside, &setup, &wire);
    CHECK(comm, "hbm_open_hosts refused rank %d of %d", rank, g.size);
    return comm;
}

/* Runs `body` once per rank, each in a thread of its own, and waits for all of them. */
void as_ranks(group g, void (*body)(member *), void *shared)
{
    segment segments[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    start starts[MOST_RANKS];
    hbm_comm *inside[MOST_RANKS] = {0};
    world *w = g.host_of ? new_world(g.only_waits, (uint64_t)g.size) : NULL;
    for (int r = 0; r < g.size; r++)
        segments[r] = new_segment();
    for (int r = 0; r < g.size; r++) {
        unsigned char *heap = segments[r].memory + ORDINARY_BYTES;
        hbm_comm *comm = g.host_of ? opened_on_hosts(g, r, segments, w, &inside[r])
                                   : opened(g, r, NULL, segments);
        starts[r] = (start){{g, r, comm, heap, shared}, body};
    }
    for (int r = 0; r < g.size; r++)
        CHECK(!pthread_create(&threads[r], NULL, begin, &starts[r]), "no thread");
    for (int r = 0; r < g.size; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < g.size; r++) {
        hbm_close(starts[r].me.comm);
        if (inside[r]) {
            hbm_close(inside[r]);
            hbm_free(inside[r]);
        }
        hbm_free(starts[r].me.comm);
    }
    end_world(w);
    for (int r = 0; r < g.size; r++)
        end_segment(segments[r]);
}

void sleep_ms(double ms)
{
    struct timespec t = {.tv_sec = (time_t)(ms / 1e3),
                         .tv_nsec = (long)((ms - 1e3 * (double)(time_t)(ms / 1e3)) * 1e6)};
    nanosleep(&t, NULL);
}

double seconds_now(void) { return 1e-9 * (double)now_ns(); }

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
#define LIST_TEST(name) {#name, test_##name},
    static const struct {
        const char *name;
        void (*test)(uint64_t seed, double seconds);
    } tests[] = {TESTS(LIST_TEST)};
    CHECK(argc == 4, "usage: %s TEST SEED SECONDS", argv[0]);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (!strcmp(argv[1], tests[i].name)) {
            tests[i].test(strtoull(argv[2], NULL, 10), strtod(argv[3], NULL));
            return 0;
        }
    CHECK(0, "no test is called %s", argv[1]);
}
