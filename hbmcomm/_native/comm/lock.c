/* The lock of a communicator.

   Ordering: it is taken with acquire and released with release, so that each holder sees what the
   holders before it wrote. Words that were stored under the lock are announced to sleeping ranks
   (bell.c) before it is released. */
#include "comm/lock.h"

#include <sched.h>

#include "comm/bell.h"
#include "memory/fork.h"

/* HBM_BUSY where another thread is in a blocking call and this one may not be in one too. */
static int lock(hbm_comm *c, int bits, int refused)
{
    while (!try_lock(c, bits, refused)) {
        if (atomic_load_explicit(&c->lock, memory_order_relaxed) & refused & INSIDE)
            return HBM_BUSY;
        sched_yield(); /* a thread that advances operations is soon done */
    }
    return HBM_OK;
}

void hbm_lock_again(hbm_comm *c) { lock(c, LOCKED, LOCKED); }

void hbm_unlock(hbm_comm *c)
{
    atomic_fetch_and_explicit(&c->lock, ~LOCKED, memory_order_release);
}

int hbm_enter_call(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED | INSIDE, LOCKED | INSIDE);
}

void hbm_leave_call(hbm_comm *c)
{
    if (c->ring_later)
        hbm_ring(c);
    atomic_store_explicit(&c->lock, 0, memory_order_release);
}

int hbm_enter_start(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED, LOCKED | INSIDE);
}

int hbm_enter_wait(hbm_comm *c)
{
    return c->forks != hbm_forks() ? HBM_FORKED : lock(c, LOCKED, LOCKED);
}

void hbm_leave_wait(hbm_comm *c)
{
    if (c->ring_later)
        hbm_ring(c);
    hbm_unlock(c);
}
