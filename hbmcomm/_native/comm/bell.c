/* Sleep and wake-up, through a futex in the control block of the rank that is waited for.

   Ordering: a sleeper stores its byte in the owner's `asleep`, fences, and looks at the word once
   more; the owner stores the word and then reads `asleep`. Where ranks share CPUs, and sleep often,
   the owner fences between the two, so that one of them sees the other's store. Elsewhere it saves
   the fence: a wake-up may be lost in the first nap, which is short. The byte stays set from nap to
   nap, so in later ones the owner sees it. `bell` rises before each wake-up, and the kernel compares
   it, so no wake-up is lost between the sleeper's check and its sleep.

   Several threads of a rank may sleep on the same owner: the byte is cleared by the last of them.

   Model: comm/bell.pml */
#include "comm/bell.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000u /* in a second */

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

/* Counts the threads that sleep on an owner, and tells it whether there are any. */
static void count_sleepers(hbm_comm *c, int owner, int change)
{
    while (atomic_flag_test_and_set_explicit(&c->counting, memory_order_acquire))
        sched_yield();
    c->sleepers[owner] += change;
    atomic_store_explicit(&c->peers[owner].control->asleep[c->rank], c->sleepers[owner] > 0,
                          memory_order_relaxed);
    atomic_flag_clear_explicit(&c->counting, memory_order_release);
}

void hbm_begin_sleep(hbm_comm *c, int owner)
{
    count_sleepers(c, owner, 1);
    atomic_thread_fence(memory_order_seq_cst);
}

void hbm_end_sleep(hbm_comm *c, int owner) { count_sleepers(c, owner, -1); }

int hbm_nap(hbm_comm *c, const awaited *a, uint64_t ns)
{
    control *other = c->peers[a->peer].control;
    struct timespec most = {.tv_sec = (time_t)(ns / NS), .tv_nsec = (long)(ns % NS)};
    uint32_t bell = atomic_load_explicit(&other->bell, memory_order_acquire);
    return !arrived(a) && syscall(SYS_futex, &other->bell, FUTEX_WAIT, bell, &most, NULL, 0) != 0
           && errno == EINTR;
}
