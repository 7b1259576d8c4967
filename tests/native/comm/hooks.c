/* The hooks that advance operations, with other threads at the worst moment.

   The file under test is compiled into this one once more, under other names: `before_store` runs
   before each of its stores and `exchanges` counts its exchanges. */
#include "core_test.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/progress.h"
#include "memory/fork.h"

static void (*before_store)(_Atomic int *flag);
static _Atomic int exchanges, paused;

static inline void pause_at(const volatile void *object)
{
    if (before_store)
        before_store((_Atomic int *)(uintptr_t)object);
}

static inline int counted(int was)
{
    atomic_fetch_add(&exchanges, 1);
    return was;
}

static int refusals; /* threads that the system refuses from now on */

static int start_unless_refused(pthread_t *thread, const pthread_attr_t *attributes,
                                void *(*run)(void *), void *argument)
{
    return refusals && refusals-- ? EAGAIN : hbm_start_thread(thread, attributes, run, argument);
}

#define hbm_start_thread start_unless_refused
#undef atomic_store
#undef atomic_store_explicit
#undef atomic_exchange
#define atomic_store(object, value) atomic_store_explicit(object, value, memory_order_seq_cst)
#define atomic_store_explicit(object, value, order) \
    (pause_at(object), (void)atomic_exchange_explicit(object, value, memory_order_seq_cst))
#define atomic_exchange(object, value) \
    counted(atomic_exchange_explicit(object, value, memory_order_seq_cst) != 0)
#define hbm_watch watch_for_test
#define hbm_use_mpi use_mpi_for_test
void hbm_use_mpi(const hbm_mpi *functions);

#include "../../../hbmcomm/_native/operations/mpi_hooks.c"

/* Runs a program that ends MPI in a process of its own; whether it ended. */
static int in_time(void (*program)(void), double seconds)
{
    pid_t child = fork(), ended = 0;
    CHECK(child >= 0, "no process");
    if (!child) {
        alarm(60);
        program();
        _exit(0);
    }
    int status = 0;
    for (double end = seconds_now() + seconds; !ended && seconds_now() < end; sleep_ms(1))
        ended = waitpid(child, &status, WNOHANG);
    if (!ended) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
    }
    return ended == child && WIFEXITED(status) && !WEXITSTATUS(status);
}

/* ---- a thread that advances operations ---- */

/* The watcher has seen that the program goes on; it stores `asleep` after the program has ended and
   has looked whether it sleeps: the first exchange was for `hooked`, the second for `asleep`. */
static void wait_for_the_end(_Atomic int *flag)
{
    if (flag == (_Atomic int *)&asleep)
        atomic_fetch_add(&paused, 1);
    while (flag == (_Atomic int *)&asleep && atomic_load(&exchanges) < 2)
        sched_yield();
}

static void end_while_the_watcher_goes_to_sleep(void)
{
    hbm_mpi table = {0};
    before_store = wait_for_the_end;
    use_mpi_for_test(&table);
    watch_for_test();
    while (!atomic_load(&paused))
        sched_yield();
    use_mpi_for_test(NULL);
}

static void end_with_an_operation_in_flight(void)
{
    hbm_mpi table = {0};
    atomic_fetch_add(&hbm_in_flight_count, 1);
    use_mpi_for_test(&table);
    watch_for_test();
    sleep_ms(2);
    use_mpi_for_test(NULL);
}

static void start_again_after_a_refusal(void)
{
    hbm_mpi table = {0};
    refusals = 1;
    use_mpi_for_test(&table);
    watch_for_test();
    CHECK(!refusals && !has_watcher, "the first start was not refused");
    watch_for_test();
    CHECK(has_watcher, "a thread that the system refused once is never started");
    use_mpi_for_test(NULL);
}

/* ---- MPICH's hook ---- */

static int (*hook)(void *thing);
static int hooks;

static int start_hook(int (*poll)(void *thing), UNUSED void *state, UNUSED uint64_t stream)
{
    hook = poll;
    hooks++;
    return 0;
}

static void start_an_operation(_Atomic int *flag)
{
    if (flag != &hooked)
        return;
    before_store = NULL;
    atomic_fetch_add(&hbm_in_flight_count, 1);
    watch_for_test();
}

static void start_while_the_hook_goes(void)
{
    hbm_mpi table = {.async_start = (uintptr_t)start_hook};
    use_mpi_for_test(&table);
    watch_for_test();
    CHECK(hooks == 1, "no hook");
    before_store = start_an_operation;
    for (int i = 0; i < 10 * IDLE_POLLS && before_store; i++)
        hooks -= hook(NULL);
    CHECK(!before_store, "an idle hook is never removed");
    CHECK(hooks == 1, "an operation is in flight and there are %d hooks", hooks);
    atomic_fetch_sub(&hbm_in_flight_count, 1);
    for (int i = 0; i < 10 * IDLE_POLLS && hooks; i++)
        hooks -= hook(NULL);
    CHECK(!hooks && !atomic_load(&hooked), "the hook stays while nothing is in flight");
}

void test_hooks(UNUSED uint64_t seed, UNUSED double seconds)
{
    CHECK(in_time(end_while_the_watcher_goes_to_sleep, 10), "a wake-up at the end was lost");
    CHECK(in_time(end_with_an_operation_in_flight, 10), "an operation in flight holds the end back");
    CHECK(in_time(start_again_after_a_refusal, 10), "later operations have no thread either");
    CHECK(in_time(start_while_the_hook_goes, 10), "an operation in flight has no hook");
}
