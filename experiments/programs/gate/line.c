/* line CPU CPU: how long a line of a cache takes from one CPU to the other and back.
 *
 * For each byte of its input it prints nanoseconds, the least of several groups of round trips; 0
 * where a group does not end in time, since something else works on a CPU. Between two bytes it
 * sleeps, and it ends with its input. A virtual machine's host may move its CPUs apart and together
 * again, which changes what shared memory costs several times over, and nothing else shows it.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { USAGE = 2, GROUPS = 10, ROUNDS = 200, PATIENCE = 20000000 /* ns */, STOP = ~0u };

typedef struct {
    _Alignas(128) atomic_uint turn; /* even: the first one's; odd: the other's */
    _Alignas(128) char rest;
} Shared;

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000l + time.tv_nsec;
}

static void pin(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Waits for a turn: 0, or -1 when it does not come in time or the other one has given up. */
static int await(Shared *shared, unsigned turn, long deadline) {
    for (unsigned long spins = 1;; spins++) {
        unsigned seen = atomic_load_explicit(&shared->turn, memory_order_acquire);
        if (seen == turn) return 0;
        if (seen == STOP || (spins % 4096 == 0 && now() > deadline)) return -1;
    }
}

static void answer(Shared *shared, long deadline) {
    for (unsigned turn = 1; !await(shared, turn, deadline); turn += 2)
        atomic_store_explicit(&shared->turn, turn + 1, memory_order_release);
}

static long least(Shared *shared, long deadline) {
    long fastest = 0;
    unsigned turn = 0;
    for (int group = 0; group < GROUPS; group++) {
        long began = now();
        for (int round = 0; round < ROUNDS; round++, turn += 2) {
            atomic_store_explicit(&shared->turn, turn + 1, memory_order_release);
            if (await(shared, turn + 2, deadline)) return 0;
        }
        long taken = (now() - began) / ROUNDS;
        if (!fastest || taken < fastest) fastest = taken;
    }
    return fastest;
}

int main(int count, char **words) {
    if (count != 3) return USAGE;
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    Shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (shared == MAP_FAILED) return EXIT_FAILURE;
    pin(atoi(words[1]));
    char asked;
    while (read(STDIN_FILENO, &asked, 1) == 1) {
        atomic_store(&shared->turn, 0);
        long deadline = now() + PATIENCE;
        pid_t other = fork();
        if (other < 0) return EXIT_FAILURE;
        if (!other) {
            pin(atoi(words[2]));
            answer(shared, deadline);
            _exit(0);
        }
        long taken = least(shared, deadline);
        atomic_store(&shared->turn, STOP);
        waitpid(other, NULL, 0);
        if (dprintf(STDOUT_FILENO, "%ld\n", taken) < 0) return EXIT_FAILURE;
    }
    return 0;
}
