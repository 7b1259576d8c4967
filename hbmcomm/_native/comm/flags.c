/* Flags: numbers in memory that ranks share, outside the control blocks. A flag has one writer, which
   only raises it, and ranks that wait for it.

   Ordering: a flag is stored with release, so all that its writer has written before is visible to
   the rank that loads it with acquire and finds it raised. Sleeping and waking are those of bell.c:
   the writer rings its own bell after the store, on which the waiting rank sleeps. These events end
   a wait: the flag is raised; the writer died or left, or a rank failed; a signal.

   Model: comm/flags.pml */
#include "comm/failure.h"
#include "comm/lock.h"
#include "comm/progress.h"
#include "comm/wait.h"
#include "kernels/clock.h"

int hbm_raise_flags(hbm_comm *c, uintptr_t flags, uint64_t count, uint64_t value)
{
    if (!c)
        return HBM_UNREADABLE;
    int status = hbm_enter_start(c);
    if (status)
        return status;
    status = c->failure.status; /* after it was closed its memory may be another's */
    if (!status) {
        for (uint64_t i = 0; i < count; i++)
            atomic_store_explicit((_Atomic uint64_t *)flags + i, value, memory_order_release);
        c->ring_later = 1;
    }
    hbm_leave_wait(c);
    return status;
}

int hbm_await_flag(hbm_comm *c, int writer, uintptr_t flag, uint64_t value)
{
    if (!c || writer < 0 || writer >= c->size)
        return HBM_UNREADABLE;
    const awaited a = {writer, (const _Atomic uint64_t *)flag, value};
    int status = hbm_enter_call(c);
    if (status)
        return status;
    while (!arrived(&a) && !c->failure.status && status == HBM_OK) {
        hbm_progress(c); /* the writer may wait for a nonblocking operation */
        status = hbm_await(c, &a, NULL);
    }
    if (!arrived(&a) && c->failure.status)
        status = c->failure.status;
    hbm_leave_call(c);
    return status;
}

int hbm_test_flag(hbm_comm *c, int writer, uintptr_t flag, uint64_t value)
{
    if (!c || writer < 0 || writer >= c->size)
        return HBM_UNREADABLE;
    const awaited a = {writer, (const _Atomic uint64_t *)flag, value};
    if (arrived(&a))
        return HBM_OK;
    int status = hbm_enter_start(c);
    if (status)
        return status;
    hbm_progress(c);
    uint64_t now = now_ns();
    if (now - c->looked >= CHECK_NS) {
        c->looked = now;
        hbm_cannot_arrive(c, &a);
    }
    status = c->failure.status;
    hbm_leave_wait(c);
    return arrived(&a) ? HBM_OK : status ? status : HBM_PENDING;
}

int hbm_check_rank(hbm_comm *c, int rank)
{
    static const _Atomic uint64_t never; /* no flag can arrive meanwhile */
    if (!c || rank < 0 || rank >= c->size)
        return HBM_UNREADABLE;
    const awaited a = {rank, &never, 1};
    int status = hbm_enter_start(c);
    if (status)
        return status;
    status = hbm_cannot_arrive(c, &a);
    hbm_leave_wait(c);
    return status;
}
