/* Claims: one owner at a time, exactly as long as its process lives. */
#include "core_test.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACERS 4

static uint64_t *new_place(void)
{
    void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    return memory;
}

static void check_free(uint64_t *place, const char *when)
{
    CHECK(!hbm_is_claimed((uintptr_t)place, BOOT), "taken %s", when);
    hbm_claim *claim = hbm_acquire_claim((uintptr_t)place, BOOT);
    CHECK(claim, "refused %s", when);
    CHECK(hbm_is_claimed((uintptr_t)place, BOOT), "not taken by a claim %s", when);
    errno = 0;
    CHECK(!hbm_acquire_claim((uintptr_t)place, BOOT) && errno == EBUSY, "taken twice %s", when);
    hbm_release_claim(claim);
    CHECK(!hbm_is_claimed((uintptr_t)place, BOOT), "taken after it was given back, %s", when);
}

/* Forks before any thread exists: a sanitizer requires that. */
static void check_death(uint64_t *place)
{
    int result[2];
    CHECK(pipe(result) == 0, "no pipe");
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        char won = hbm_acquire_claim((uintptr_t)place, BOOT) != NULL;
        if (write(result[1], &won, 1) == 1)
            pause();
        _Exit(1);
    }
    char won = 0;
    CHECK(read(result[0], &won, 1) == 1 && won, "the child was refused");
    CHECK(hbm_is_claimed((uintptr_t)place, BOOT), "the child's claim is not seen");
    kill(child, SIGKILL);
    CHECK(waitpid(child, NULL, 0) == child, "no child");
    check_free(place, "after its owner died");
}

static void check_fork(uint64_t *place)
{
    hbm_claim *claim = hbm_acquire_claim((uintptr_t)place, BOOT);
    CHECK(claim, "refused");
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        hbm_release_claim(claim);
        _Exit(0);
    }
    CHECK(waitpid(child, NULL, 0) == child, "no child");
    CHECK(hbm_is_claimed((uintptr_t)place, BOOT), "the child of a fork released the claim");
    hbm_release_claim(claim);
}

typedef struct {
    uint64_t *place;
    pthread_barrier_t start;
    hbm_claim *won[RACERS];
    _Atomic int next;
} race;

static void *run_race(void *argument)
{
    race *r = argument;
    int me = atomic_fetch_add(&r->next, 1);
    pthread_barrier_wait(&r->start);
    r->won[me] = hbm_acquire_claim((uintptr_t)r->place, BOOT);
    return NULL; /* the claim outlives the thread that acquired it */
}

static void check_race(uint64_t *place)
{
    race r = {.place = place};
    pthread_t threads[RACERS];
    pthread_barrier_init(&r.start, NULL, RACERS);
    for (int i = 0; i < RACERS; i++)
        CHECK(pthread_create(&threads[i], NULL, run_race, &r) == 0, "no thread");
    int winners = 0;
    for (int i = 0; i < RACERS; i++)
        pthread_join(threads[i], NULL);
    CHECK(hbm_is_claimed((uintptr_t)place, BOOT), "no claim is left");
    for (int i = 0; i < RACERS; i++)
        if (r.won[i]) {
            winners++;
            hbm_release_claim(r.won[i]);
        }
    CHECK(winners == 1, "%d won", winners);
    pthread_barrier_destroy(&r.start);
}

void test_claims(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    uint64_t *place = new_place();
    check_death(place);
    check_free(place, "with what a claim left");
    *place = 0;
    check_free(place, "where all is zero");
    uint32_t earlier[2] = {(uint32_t)getpid(), BOOT + 1};
    memcpy(place, earlier, sizeof earlier);
    check_free(place, "since an earlier boot");
    do {
        *place = mixed(seed++);
        check_free(place, "over something else");
        check_race(place);
    } while (seconds_now() < end);
    munmap(place, 4096);
}

void test_claims_and_forks(UNUSED uint64_t seed, UNUSED double seconds)
{
    check_fork(new_place());
}
