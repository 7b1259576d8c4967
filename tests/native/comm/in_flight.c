/* Operations in flight: any number of them, in any process and under any level of threads. */
#include "core_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/bell.h"

typedef struct {
    segment segments[2];
    hbm_comm *comms[2]; /* of rank 0 and of rank 1, both in this thread */
} pair;

static const hbm_call barrier = {.operation = HBM_BARRIER};

static pair new_pair(void)
{
    pair p;
    for (int r = 0; r < 2; r++)
        p.segments[r] = new_segment();
    for (int r = 0; r < 2; r++)
        p.comms[r] = opened((group){.size = 2, .oversubscribed = 1}, r, NULL, p.segments);
    return p;
}

static void end_pair(pair p)
{
    for (int r = 0; r < 2; r++) {
        hbm_close(p.comms[r]);
        hbm_free(p.comms[r]);
    }
    for (int r = 0; r < 2; r++)
        end_segment(p.segments[r]);
}

/* ---- many communicators ---- */

#define MANY 150

static int status_of(const hbm_operation *o)
{
    return atomic_load_explicit(&o->status, memory_order_acquire);
}

/* A test of one operation advances all others, wherever they are in a list. */
void test_many_in_flight(UNUSED uint64_t seed, UNUSED double seconds)
{
    pair pairs[MANY];
    hbm_operation *started[MANY];
    for (int i = 0; i < MANY; i++) {
        pairs[i] = new_pair();
        started[i] = hbm_new(pairs[i].comms[0], &barrier);
        CHECK(hbm_start(started[i], 0) == HBM_PENDING, "a barrier of one rank is complete");
    }
    CHECK(hbm_in_flight() == MANY, "%d are in flight", (int)hbm_in_flight());
    for (int i = 0; i < MANY; i++) {
        CHECK(hbm_run(pairs[i].comms[1], &barrier) == HBM_OK, "a barrier failed");
        hbm_test(started[i + 1 < MANY ? MANY - 1 : i], 0);
        CHECK(status_of(started[i]) == HBM_OK, "operation %d of %d did not advance", i, MANY);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(hbm_wait(started[i], 0) == HBM_OK, "operation %d failed", i);
        hbm_drop(started[i]);
        end_pair(pairs[i]);
    }
}

/* A number of an operation that is complete never names another one in the same memory. */
void test_numbers(UNUSED uint64_t seed, UNUSED double seconds)
{
    pair p = new_pair();
    uint64_t first = 0;
    for (int i = 0; i < 70000; i++) {
        uint64_t number = hbm_start_once(p.comms[0], &barrier, 0);
        CHECK(number > HBM_LAST_STATUS && number != first, "the number is %lu",
              (unsigned long)number);
        first = first ? first : number;
        if (i)
            CHECK(hbm_test_once(first, 0) == HBM_OK, "use %d has the number of use 0", i);
        CHECK(hbm_run(p.comms[1], &barrier) == HBM_OK, "a barrier failed");
        CHECK(hbm_wait_once(number, 0) == HBM_OK, "operation %d failed", i);
    }
    CHECK(hbm_wait_once(first + (UINT64_C(1) << 20), 0) == HBM_OK, "an unused number has memory");
    end_pair(p);
}

/* ---- two threads of a rank that sleep on the same rank ---- */

void test_sleepers(UNUSED uint64_t seed, UNUSED double seconds)
{
    pair p = new_pair();
    const _Atomic unsigned char *asleep = &p.comms[0]->peers[1].control->asleep[0];
    hbm_begin_sleep(p.comms[0], 1);
    hbm_begin_sleep(p.comms[0], 1);
    CHECK(atomic_load(asleep), "the rank does not know of sleepers");
    hbm_end_sleep(p.comms[0], 1);
    CHECK(atomic_load(asleep), "the second sleeper will not be woken");
    hbm_end_sleep(p.comms[0], 1);
    CHECK(!atomic_load(asleep), "the rank rings for nobody");
    end_pair(p);
}

/* ---- an MPI that allows calls of its main thread alone, or of one thread at a time ---- */

static pthread_t main_thread;
static int (*released)(void *extra);
static void *extra_state;
static _Atomic int calls_elsewhere, completed;

static void called(void)
{
    atomic_fetch_add(&calls_elsewhere, !pthread_equal(pthread_self(), main_thread));
}

static int iprobe(UNUSED int source, UNUSED int tag, UNUSED uint64_t comm, int *flag,
                  UNUSED void *status)
{
    called();
    *flag = 0;
    return 0;
}

static int grequest_start(UNUSED void *query, int (*release)(void *), UNUSED void *cancel,
                          void *extra, uint64_t *request)
{
    called();
    released = release;
    extra_state = extra;
    *request = 17;
    return 0;
}

static int grequest_complete(UNUSED uint64_t request)
{
    called();
    atomic_fetch_add(&completed, 1);
    return 0;
}

static int wait_for(uint64_t *request, UNUSED void *status)
{
    called();
    *request = 0;
    return released(extra_state);
}

static int register_progress(UNUSED int (*progress)(void)) { return 0; }

static void *run_barrier(void *comm)
{
    CHECK(hbm_run(comm, &barrier) == HBM_OK, "a barrier failed");
    return NULL;
}

static void *test_it(void *operation)
{
    hbm_test(operation, 0);
    return NULL;
}

static void *run_barrier_beside(void *comm)
{
    hbm_set_beside(1);
    return run_barrier(comm);
}

static void *test_it_beside(void *operation)
{
    hbm_set_beside(1);
    return test_it(operation);
}

static void on_another_thread(void *(*act)(void *), void *argument)
{
    pthread_t thread;
    CHECK(!pthread_create(&thread, NULL, act, argument), "no thread");
    pthread_join(thread, NULL);
}

/* The main thread starts an operation and waits for it; another thread advances it. Returns whether
   that one ended the request. */
static int another_ends_it(int threads, void *(*barrier_of)(void *), void *(*poll)(void *))
{
    main_thread = pthread_self();
    atomic_store(&calls_elsewhere, 0);
    atomic_store(&completed, 0);
    const hbm_mpi mpi = {.iprobe = (uintptr_t)iprobe, .grequest_start = (uintptr_t)grequest_start,
                         .grequest_complete = (uintptr_t)grequest_complete,
                         .wait = (uintptr_t)wait_for, .handle_bytes = 8,
                         .register_progress = (uintptr_t)register_progress,
                         .threads = threads, .serves_requests = 1};
    uint64_t request = 0;
    pair p = new_pair();
    hbm_use_mpi(&mpi);
    hbm_operation *o = hbm_new(p.comms[0], &barrier);
    CHECK(hbm_start(o, (uintptr_t)&request) == HBM_PENDING && request == 17, "there is no request");
    on_another_thread(barrier_of, p.comms[1]);
    on_another_thread(poll, o);
    CHECK(status_of(o) == HBM_OK, "another thread did not advance the operation");
    int is_ended = atomic_load(&completed);
    CHECK(is_ended == !!atomic_load(&calls_elsewhere), "%d ends, %d calls elsewhere", is_ended,
          atomic_load(&calls_elsewhere));
    CHECK(hbm_wait(o, (uintptr_t)&request) == HBM_OK, "the operation failed");
    CHECK(atomic_load(&completed) == 1, "the request ended %d times", atomic_load(&completed));
    CHECK(is_ended || !request, "the main thread did not free the request");
    hbm_drop(o);
    hbm_use_mpi(NULL);
    end_pair(p);
    return is_ended;
}

void test_mpi_threads(UNUSED uint64_t seed, UNUSED double seconds)
{
    CHECK(!another_ends_it(HBM_FUNNELED, run_barrier, test_it), "a thread called MPI that may not");
    CHECK(another_ends_it(HBM_SERIALIZED, run_barrier_beside, test_it),
          "a thread did not call MPI that may");
    CHECK(!another_ends_it(HBM_SERIALIZED, run_barrier_beside, test_it_beside),
          "a thread of the library called MPI beside the program");
    CHECK(another_ends_it(HBM_MULTIPLE, run_barrier, test_it_beside),
          "a thread of the library did not end a request");
}

/* ---- the library's own thread, under an MPI without hooks ---- */

static unsigned char *slow_page;
static _Atomic int faults;

static void open_page(UNUSED int number, siginfo_t *info, UNUSED void *context)
{
    const unsigned char *at = info->si_addr;
    if (at < slow_page || at >= slow_page + PAGE)
        _exit(3);
    mprotect(slow_page, PAGE, PROT_READ | PROT_WRITE);
    atomic_fetch_add(&faults, 1);
}

/* A program may handle faults of its memory itself, as collectors of garbage do. */
void test_watched(UNUSED uint64_t seed, UNUSED double seconds)
{
    const hbm_mpi mpi = {.handle_bytes = 8};
    const struct sigaction fault = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    unsigned char sent[64];
    memset(sent, 7, sizeof sent);
    slow_page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(slow_page != MAP_FAILED && !sigaction(SIGSEGV, &fault, NULL), "no page with a handler");
    hbm_call call = {.operation = HBM_BCAST, .dtype = HBM_UINT8, .count = sizeof sent};
    pair p = new_pair();
    hbm_use_mpi(&mpi);
    call.send = call.recv = (uintptr_t)slow_page;
    hbm_operation *o = hbm_new(p.comms[1], &call);
    CHECK(hbm_start(o, 0) == HBM_PENDING, "a broadcast is complete without its root");
    call.send = call.recv = (uintptr_t)sent;
    CHECK(hbm_run(p.comms[0], &call) == HBM_OK, "the root of a broadcast waits");
    for (int i = 0; i < 5000 && status_of(o) == HBM_PENDING; i++)
        sleep_ms(1);
    CHECK(status_of(o) == HBM_OK, "nobody advanced the operation");
    CHECK(atomic_load(&faults) == 1, "%d faults of one page", atomic_load(&faults));
    CHECK(!memcmp(slow_page, sent, sizeof sent), "other data arrived");
    hbm_drop(o);
    hbm_use_mpi(NULL);
    end_pair(p);
    munmap(slow_page, PAGE);
}

/* ---- a fork while another thread is inside the library ---- */

static _Atomic int is_enough;

static void *start_and_drop(void *comm)
{
    while (!atomic_load(&is_enough)) {
        hbm_operation *some[3]; /* the first alone needs no lock */
        for (int i = 0; i < 3; i++)
            some[i] = hbm_new(comm, &barrier);
        for (int i = 0; i < 3; i++)
            hbm_drop(some[i]);
    }
    return NULL;
}

/* The child has a communicator of its own, with an operation in flight. */
static int in_child(pair *parents)
{
    alarm(20); /* ends a child that waits for a lock */
    if (hbm_start_once(parents->comms[0], &barrier, 0) != HBM_FORKED || hbm_in_flight())
        return 1;
    pair p = new_pair();
    hbm_operation *some[3];
    for (int i = 0; i < 3; i++)
        some[i] = hbm_new(p.comms[0], &barrier);
    if (hbm_start(some[2], 0) != HBM_PENDING || hbm_run(p.comms[1], &barrier) != HBM_OK
        || hbm_wait(some[2], 0) != HBM_OK)
        return 2;
    for (int i = 0; i < 3; i++)
        hbm_drop(some[i]);
    end_pair(p);
    return 0;
}

void test_forks(UNUSED uint64_t seed, double seconds)
{
    pair p = new_pair();
    pthread_t thread;
    uint64_t number = hbm_start_once(p.comms[0], &barrier, 0);
    CHECK(!pthread_create(&thread, NULL, start_and_drop, p.comms[0]), "no thread");
    double end = seconds_now() + seconds;
    for (int i = 0; i < 50 || seconds_now() < end; i++) {
        int ended;
        pid_t child = fork();
        if (!child)
            _exit(in_child(&p));
        CHECK(waitpid(child, &ended, 0) == child && WIFEXITED(ended) && !WEXITSTATUS(ended),
              "child %d ended with %x", i, ended);
    }
    atomic_store(&is_enough, 1);
    pthread_join(thread, NULL);
    CHECK(hbm_run(p.comms[1], &barrier) == HBM_OK && hbm_wait_once(number, 0) == HBM_OK,
          "the forks broke an operation of their parent");
    end_pair(p);
}
