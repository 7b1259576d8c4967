/* Waiting for another rank: spin, then yield the CPU, then sleep.

   Ordering: the word that is waited for is loaded with acquire, so that all its owner wrote before
   the release store is visible. bell.c has the argument for sleeping ranks.

   After the spinning, this rank also advances MPI and its own other operations, because the rank
   that it waits for may wait for those. These events end a wait: the word arrives; a rank failed,
   died or made another call; a signal; another thread advanced the operation. */
#include "comm/wait.h"

#include <sched.h>

#include "comm/bell.h"
#include "kernels/clock.h"
#include "comm/failure.h"
#include "comm/lock.h"
#include "comm/mpi_table.h"
#include "comm/progress.h"

#define PAUSES 32                        /* between two reads of the clock */
#define SIGNAL_NS (50 * 1000 * 1000)     /* between two checks for signals that came before a nap */
#define LONGEST_NAP_NS (1000 * 1000)
#define LONELY_NAP_NS (50 * 1000 * 1000) /* where a rank has nothing else to advance; not the first */
#define YIELDS 8                         /* between two rounds of advancing everything else */
#define PAUSE_YIELD_NS (2 * 1000 * 1000) /* of waiting, after which pauses are naps */
#define SHORTEST_PAUSE_NS (20 * 1000)
#define LONGEST_PAUSE_NS (200 * 1000)

static int never(void) { return 0; }
static int (*interrupted)(void) = never;

void hbm_on_wait(int (*check)(void)) { interrupted = check ? check : never; }

static _Thread_local struct {
    const hbm_comm *comm;
    uint64_t since;
} sleeping;

const hbm_comm *hbm_waits_in(uint64_t *ns)
{
    *ns = now_ns() - sleeping.since;
    return sleeping.comm;
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* yield does nothing on most of them */
#endif
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

/* The word often arrives in less time than it takes to read the clock. */
static int spin(hbm_comm *c, const awaited *a)
{
    if (!c->tuning.spin_ns)
        return arrived(a);
    if (look_for_a_while(a))
        return 1;
    uint64_t began = now_ns();
    do {
        if (look_for_a_while(a))
            return 1;
    } while (now_ns() - began < c->tuning.spin_ns);
    return 0;
}

/* Advances the operations of this process, except those of `queue`, and those of MPI. */
static void advance_others(const hbm_comm *queue)
{
    hbm_progress_others(queue);
    hbm_progress_mpi();
}

static int yield_until(hbm_comm *c, const awaited *a, const hbm_comm *queue)
{
    uint64_t began = now_ns();
    for (unsigned i = 0; now_ns() - began < c->tuning.yield_ns; i++) {
        if (i % YIELDS == YIELDS - 1)
            advance_others(queue);
        sched_yield();
        if (arrived(a))
            return 1;
    }
    return 0;
}

/* Naps grow, but stay short enough for MPI and other operations, for which nobody wakes this
   rank. */
static int nap_until(hbm_comm *c, const awaited *a, const hbm_comm *queue)
{
    uint64_t longest = hbm_has_mpi() ? LONGEST_NAP_NS : LONELY_NAP_NS, ns = c->tuning.nap_ns;
    uint64_t looked = now_ns(), asked = looked;
    while (!arrived(a)) {
        int signal = hbm_nap(c, a, ns);
        uint64_t now = now_ns();
        advance_others(queue);
        ns = 2 * ns < longest ? 2 * ns : longest;
        if (signal || now - asked > SIGNAL_NS) {
            asked = now;
            if (interrupted()) {
                hbm_lock_again(c);
                return HBM_INTERRUPTED;
            }
        }
        if (!signal && now - looked < CHECK_NS)
            continue;
        looked = now;
        hbm_lock_again(c);
        if (hbm_cannot_arrive(c, a))
            return HBM_OK;
        hbm_unlock(c);
    }
    hbm_lock_again(c);
    return HBM_OK;
}

static int sleep_until(hbm_comm *c, const awaited *a, const hbm_comm *queue)
{
    sleeping.comm = c;
    sleeping.since = now_ns();
    hbm_begin_sleep(c, a->peer);
    int status = nap_until(c, a, queue);
    hbm_end_sleep(c, a->peer);
    return status;
}

int hbm_await(hbm_comm *c, const awaited *a, const hbm_comm *queue)
{
    if (spin(c, a))
        return HBM_OK;
    if (c->ring_later)
        hbm_ring(c);
    hbm_unlock(c);
    if (!yield_until(c, a, queue))
        return sleep_until(c, a, queue);
    hbm_lock_again(c);
    return HBM_OK;
}

int hbm_pause(hbm_comm *c, uint64_t since)
{
    static _Thread_local uint64_t asked;
    uint64_t now = now_ns(), waited = now - since;
    hbm_unlock(c);
    int signal = 0;
    if (waited < PAUSE_YIELD_NS) {
        sched_yield();
    } else {
        uint64_t ns = (waited - PAUSE_YIELD_NS) / 4;
        ns = ns < SHORTEST_PAUSE_NS ? SHORTEST_PAUSE_NS
                                    : ns < LONGEST_PAUSE_NS ? ns : LONGEST_PAUSE_NS;
        sleeping.comm = c;
        sleeping.since = since;
        signal = nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL) != 0;
        hbm_progress_others(c);
    }
    int ends = 0;
    if (signal || now - asked > SIGNAL_NS) {
        ends = waited > SIGNAL_NS || signal ? interrupted() : 0;
        asked = now;
    }
    hbm_lock_again(c);
    return ends ? HBM_INTERRUPTED : HBM_OK;
}

int hbm_complete(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    for (;;) {
        hbm_progress(c);
        int status = atomic_load_explicit(&o->status, memory_order_acquire);
        if (status != HBM_PENDING)
            return status;
        awaited a = c->awaiting; /* another thread may change it while this one waits */
        if ((c->by ? c->by->wait(c) : hbm_await(c, &a, c)) == HBM_INTERRUPTED)
            return HBM_PENDING;
    }
}
