/* Waiting for another rank: spin, then give way, then sleep; and waking those who sleep.

   Ordering: the word that is waited for is loaded with acquire, so that all its owner wrote before
   the release store is seen. A sleeper stores its byte in the owner's `asleep`, fences, and looks at
   the word once more; the owner stores the word and looks at `asleep`. Where ranks share CPUs, and
   sleep often, the owner fences between the two, so that one of them sees the other's store. Where
   they do not, it saves the fence: a wake-up may be lost then, and costs one short nap.

   Past the spinning, this rank lets MPI and its own other operations go on, for the rank that it
   waits for may wait for those. What ends a wait: the word, a rank that failed or died or did another
   call, a signal, or another thread that brought the operation forward. */
#include "comm.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAUSES 32                      /* between two looks at the clock */
#define LOOK_NS (5 * 1000 * 1000)      /* between two looks for trouble */
#define SIGNAL_NS (50 * 1000 * 1000)   /* between two looks for signals that came before a nap */
#define LONGEST_NAP_NS (1000 * 1000)
#define LONELY_NAP_NS (50 * 1000 * 1000) /* where a rank need not look after anything else */
#define YIELDS 8                       /* between two looks after everything else */

static int never(void) { return 0; }
static int (*interrupted)(void) = never;

void hbm_on_wait(int (*check)(void)) { interrupted = check ? check : never; }

uint64_t hbm_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield does nothing on most of them */
#endif
}

/* ---- waking ---- */

static int anyone_asleep(const hbm_comm *c)
{
    for (int r = 0; r < c->size; r++)
        if (atomic_load_explicit(&c->own->asleep[r], memory_order_relaxed))
            return 1;
    return 0;
}

void hbm_ring(hbm_comm *c)
{
    c->ring_later = 0;
    if (c->oversubscribed)
        atomic_thread_fence(memory_order_seq_cst);
    if (!anyone_asleep(c))
        return;
    atomic_fetch_add_explicit(&c->own->bell, 1, memory_order_release);
    syscall(SYS_futex, &c->own->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- waiting ---- */

static int arrived(const awaited *a)
{
    return atomic_load_explicit(a->value, memory_order_acquire) >= a->target;
}

/* One nap, or none if the word has come meanwhile; whether a signal came. */
static int nap(hbm_comm *c, const awaited *a, uint64_t ns)
{
    control *other = c->peers[a->peer].control;
    struct timespec most = {.tv_nsec = (long)ns};
    int signal = 0;
    atomic_store_explicit(&other->asleep[c->rank], 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    uint32_t bell = atomic_load_explicit(&other->bell, memory_order_acquire);
    if (!arrived(a) && syscall(SYS_futex, &other->bell, FUTEX_WAIT, bell, &most, NULL, 0) != 0)
        signal = errno == EINTR;
    atomic_store_explicit(&other->asleep[c->rank], 0, memory_order_relaxed);
    return signal;
}

static int look_for_a_while(const awaited *a)
{
    for (int i = 0; i < PAUSES; i++) {
        if (arrived(a))
            return 1;
        pause_cpu();
    }
    return 0;
}

/* The word often comes before the clock could be read. */
static int spin(hbm_comm *c, const awaited *a)
{
    if (!c->tuning.spin_ns)
        return arrived(a);
    if (look_for_a_while(a))
        return 1;
    uint64_t began = hbm_now_ns();
    do {
        if (look_for_a_while(a))
            return 1;
    } while (hbm_now_ns() - began < c->tuning.spin_ns);
    return 0;
}

/* Lets everything else go on that this process has a part in. */
static void let_others_go_on(hbm_comm *c)
{
    hbm_progress_others(c);
    hbm_progress_mpi();
}

static int give_way(hbm_comm *c, const awaited *a)
{
    uint64_t began = hbm_now_ns();
    for (unsigned i = 0; hbm_now_ns() - began < c->tuning.yield_ns; i++) {
        if (i % YIELDS == YIELDS - 1)
            let_others_go_on(c);
        sched_yield();
        if (arrived(a))
            return 1;
    }
    return 0;
}

/* Whether what is waited for cannot come any more; then the communicator, which is locked, has failed. */
static int is_hopeless(hbm_comm *c, const awaited *a)
{
    hbm_failure why;
    if (!c->failure.status && hbm_trouble(c, a->peer, &why) && !arrived(a))
        hbm_fail(c, &why); /* else it came before its owner left */
    return c->failure.status;
}

/* Nobody need wait for the first operation of a communicator in a blocking call: whoever brings it
   forward looks now and then whether it can be completed at all. */
void hbm_look(hbm_comm *c)
{
    uint64_t now = hbm_now_ns();
    if (!c->head || now - c->looked < LOOK_NS)
        return;
    c->looked = now;
    if (is_hopeless(c, &c->awaiting))
        hbm_progress(c);
}

/* Naps grow, but stay short enough for MPI and other operations, which nobody wakes this rank for. */
static int sleep_until(hbm_comm *c, const awaited *a)
{
    uint64_t longest = hbm_has_mpi() ? LONGEST_NAP_NS : LONELY_NAP_NS, ns = c->tuning.nap_ns;
    uint64_t looked = hbm_now_ns(), asked = looked;
    while (!arrived(a)) {
        int signal = nap(c, a, ns);
        uint64_t now = hbm_now_ns();
        let_others_go_on(c);
        ns = 2 * ns < longest ? 2 * ns : longest;
        if (signal || now - asked > SIGNAL_NS) {
            asked = now;
            if (interrupted()) {
                hbm_lock_again(c);
                return HBM_INTERRUPTED;
            }
        }
        if (!signal && now - looked < LOOK_NS)
            continue;
        looked = now;
        hbm_lock_again(c);
        if (is_hopeless(c, a))
            return HBM_OK;
        hbm_unlock(c);
    }
    hbm_lock_again(c);
    return HBM_OK;
}

/* Until there may be something to do for the communicator's first operation, or it has failed;
   HBM_INTERRUPTED where a signal's handler wants this thread out. The caller has locked the
   communicator; it is open to other threads meanwhile. */
int hbm_await(hbm_comm *c)
{
    awaited a = c->awaiting;
    if (spin(c, &a))
        return HBM_OK;
    if (c->ring_later)
        hbm_ring(c);
    hbm_unlock(c);
    if (!give_way(c, &a))
        return sleep_until(c, &a);
    hbm_lock_again(c);
    return HBM_OK;
}
