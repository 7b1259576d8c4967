/* Waiting for another rank: spin, then yield, then sleep on a futex.

   Ordering: the word that is waited for is loaded with acquire, so that all its owner wrote before
   the release store is seen. Sleeping: the sleeper stores its byte in `asleep`, fences, and looks
   at the word once more; the owner stores the word, fences, and looks at `asleep`. One of the two
   sees the other's store, so no wake-up is lost (and a sleep never lasts longer than NAP_NS).
   What ends a wait: the word, a rank that failed or died, or a signal. */
#include "core.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NAP_NS (50 * 1000 * 1000)
#define LOOK_NS (100 * 1000 * 1000)

static int never(void) { return 0; }
static int (*interrupted)(void) = never;

void hbm_on_wait(int (*check)(void)) { interrupted = check; }

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

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
    atomic_thread_fence(memory_order_seq_cst);
    if (anyone_asleep(c)) {
        atomic_store_explicit(&c->own->bell, atomic_load_explicit(&c->own->bell,
                              memory_order_relaxed) + 1, memory_order_release);
        syscall(SYS_futex, &c->own->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    }
}

/* Make known to all that this communicator is broken, and remember why. */
int hbm_fail(hbm_comm *c, const hbm_failure *why)
{
    c->failure = *why;
    if (!atomic_load_explicit(&c->own->failed, memory_order_relaxed)) {
        c->own->failure = *why;
        atomic_store_explicit(&c->own->failed, (uint32_t)why->status, memory_order_release);
    }
    hbm_ring(c);
    return why->status;
}

/* The kernel gives up a process's locks and claims when it dies, before anyone reaps it. */
static int is_alive(const hbm_comm *c, int peer)
{
    if (c->claims)
        return hbm_is_taken(c->claims[peer], c->boot);
    struct flock held = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = peer, .l_len = 1};
    if (c->lock < 0 || fcntl(c->lock, F_GETLK, &held) != 0)
        return 1;
    return held.l_type != F_UNLCK;
}

/* Whether a peer that is waited for has left or died, or any rank has failed. */
static int trouble(const hbm_comm *c, int peer, hbm_failure *why)
{
    for (int r = 0; r < c->size; r++) {
        const control *other = c->ranks[r];
        if (r != c->rank && atomic_load_explicit(&other->failed, memory_order_acquire)
            && (other->failure.status != HBM_CLOSED || r == peer)) {
            *why = other->failure;
            return 1;
        }
    }
    if (is_alive(c, peer))
        return 0;
    *why = (hbm_failure){.status = HBM_PEER_DIED, .rank = peer, .other = c->rank};
    return 1;
}

/* Now and then see that the others live, for calls in which nothing is waited for. One that has left
   may have done its part. */
int hbm_glance(hbm_comm *c)
{
    uint64_t now = now_ns();
    if (now - c->looked_ns < LOOK_NS)
        return HBM_OK;
    c->looked_ns = now;
    for (int r = 0; r < c->size; r++) {
        hbm_failure why;
        if (r != c->rank && trouble(c, r, &why) && why.status != HBM_CLOSED)
            return hbm_fail(c, &why);
    }
    return HBM_OK;
}

static int arrived(const _Atomic uint64_t *word, uint64_t target)
{
    return atomic_load_explicit(word, memory_order_acquire) >= target;
}

/* One nap, or none if the word has come meanwhile. */
static void nap(hbm_comm *c, int peer, const _Atomic uint64_t *word, uint64_t target, int *signal)
{
    control *other = c->ranks[peer];
    struct timespec most = {.tv_nsec = NAP_NS};
    atomic_store_explicit(&other->asleep[c->rank], 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    uint32_t bell = atomic_load_explicit(&other->bell, memory_order_acquire);
    if (!arrived(word, target)
        && syscall(SYS_futex, &other->bell, FUTEX_WAIT, bell, &most, NULL, 0) != 0)
        *signal = errno == EINTR;
    atomic_store_explicit(&other->asleep[c->rank], 0, memory_order_relaxed);
}

static int await_asleep(hbm_comm *c, int peer, const _Atomic uint64_t *word, uint64_t target)
{
    uint64_t looked = now_ns();
    while (!arrived(word, target)) {
        int signal = 0;
        nap(c, peer, word, target, &signal);
        uint64_t now = now_ns();
        if (!signal && now - looked < NAP_NS)
            continue;
        looked = now;
        hbm_failure why;
        int wrong = trouble(c, peer, &why);
        if (arrived(word, target)) /* it came before its owner left */
            return HBM_OK;
        if (wrong)
            return hbm_fail(c, &why);
        if (interrupted()) {
            why = (hbm_failure){.status = HBM_INTERRUPTED, .rank = c->rank, .other = peer};
            return hbm_fail(c, &why);
        }
    }
    return HBM_OK;
}

int hbm_await(hbm_comm *c, int peer, const _Atomic uint64_t *word, uint64_t target)
{
    if (arrived(word, target))
        return HBM_OK;
    for (unsigned i = 0; i < c->spins; i++) {
        if (arrived(word, target))
            return HBM_OK;
        pause_cpu();
    }
    if (c->ring_later)
        hbm_ring(c);
    for (uint64_t began = now_ns(); now_ns() - began < c->yield_ns; sched_yield())
        if (arrived(word, target))
            return HBM_OK;
    return await_asleep(c, peer, word, target);
}
