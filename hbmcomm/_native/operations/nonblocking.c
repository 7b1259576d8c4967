/* Nonblocking and persistent operations: started now, completed later.

   Ordering: `status` is loaded with acquire, so that a thread that finds an operation complete sees
   its results, whichever thread advanced it. */
#include "algorithms/algorithms.h"
#include "comm/failure.h"
#include "kernels/clock.h"
#include "comm/progress.h"
#include "comm/lock.h"
#include "memory/fork.h"
#include "comm/lock.h"
#include "memory/fork.h"
#include "operations/mpi_hooks.h"
#include "comm/mpi_table.h"
#include "operations/operation.h"
#include "comm/requests.h"
#include "comm/progress.h"
#include "comm/requests.h"
#include "comm/wait.h"

#define LOOKS 64        /* between two reads of the clock */
#define LOOK_FOR_NS 500

/* Spins for about as long as it takes to make an MPI request and complete it: ranks that start
   together complete a short operation in less. Returns whether nothing arrived. */
static int spins_in_vain(const hbm_comm *c)
{
    if (c->oversubscribed)
        return 1;
    uint64_t end = now_ns() + LOOK_FOR_NS;
    do {
        for (int i = 0; i < LOOKS; i++)
            if (arrived(&c->awaiting))
                return 0;
    } while (now_ns() < end);
    return 1;
}

int hbm_start(hbm_operation *o, uintptr_t request)
{
    hbm_comm *c = o->comm;
    hbm_end_requests();
    int status = hbm_enter_start(c);
    if (status)
        return status;
    hbm_take_back_request(request); /* from a start of this plan that nobody waited for */
    o->is_in_flight = 0;
    status = hbm_prepare(o);
    if (!status) {
        hbm_append(o);
        do
            hbm_progress(c);
        while (c->head == o && o->block <= c->tuning.eager_bytes && !spins_in_vain(c));
        status = atomic_load_explicit(&o->status, memory_order_relaxed);
        if (status == HBM_PENDING) {
            hbm_set_in_flight(o);
            hbm_begin_request(o, request);
        } else if (status == HBM_OK) {
            hbm_complete_request(request);
        }
    }
    hbm_leave_wait(c);
    if (status == HBM_PENDING)
        hbm_watch();
    return status;
}

static int status_of(const hbm_operation *o)
{
    return atomic_load_explicit(&o->status, memory_order_acquire);
}

int hbm_test(hbm_operation *o, uintptr_t request)
{
    if (!o)
        return HBM_OK;
    hbm_end_requests();
    if (status_of(o) == HBM_PENDING)
        hbm_progress_others(NULL);
    if (status_of(o) == HBM_PENDING)
        hbm_progress_mpi(); /* other ranks may wait for MPI */
    int status = status_of(o);
    if (status != HBM_PENDING)
        hbm_free_request(o, request); /* another thread may drop the operation then */
    return status;
}

int hbm_wait(hbm_operation *o, uintptr_t request)
{
    if (!o)
        return HBM_OK;
    int status = status_of(o);
    if (status == HBM_PENDING) {
        status = hbm_enter_wait(o->comm);
        if (status)
            return status;
        status = hbm_complete(o);
        hbm_leave_wait(o->comm);
    }
    hbm_end_requests();
    if (status != HBM_PENDING)
        hbm_free_request(o, request);
    return status;
}

/* ---- calls that MPI serves ---- */

/* Behind operations in flight it waits in the queue for its number, and nobody waits for it. */
int hbm_note(hbm_comm *c, int operation)
{
    hbm_call call = {.operation = (uint8_t)operation};
    if (!c)
        return HBM_UNREADABLE;
    if (c->tuning.check_calls)
        return hbm_run(c, &call);
    int status = hbm_enter_start(c);
    if (status)
        return status;
    hbm_operation *o = hbm_new(c, &call);
    status = o ? hbm_prepare(o) : hbm_blame(c, HBM_NO_MEMORY, c->rank);
    if (!status) {
        o->is_note = 1;
        o->advance = c->by ? c->by->advance : hbm_note_path;
        o->reads_memory = 1; /* ranks that have failed must be noticed: MPI would wait for them */
        hbm_append(o);
        hbm_progress(c);
        status = atomic_load_explicit(&o->status, memory_order_relaxed);
    }
    if (status == HBM_PENDING) {
        hbm_set_in_flight(o);
        status = HBM_OK;
    }
    hbm_drop(o);
    hbm_leave_wait(c);
    return status;
}

/* ---- started once ---- */

uint64_t hbm_start_once(hbm_comm *c, const hbm_call *call, uintptr_t request)
{
    if (!c || !call || (request && !hbm_serves_requests()))
        return HBM_UNREADABLE;
    if (c->forks != hbm_forks())
        return HBM_FORKED;
    hbm_operation *o = hbm_new(c, call);
    if (!o)
        return HBM_NO_MEMORY;
    int status = hbm_start(o, request);
    if (status == HBM_PENDING)
        return hbm_number_of(o);
    hbm_drop(o);
    return (uint64_t)status;
}

uint64_t hbm_start_plan(uintptr_t plan, uintptr_t request)
{
    const hbm_plan *p = (const hbm_plan *)plan;
    return p ? hbm_start_once(p->comm, p->call, request) : HBM_UNREADABLE;
}

void hbm_drop_once(uint64_t operation) { hbm_drop(hbm_retire(operation)); }

int hbm_test_once(uint64_t operation, uintptr_t request)
{
    int status = hbm_test(hbm_numbered(operation), request);
    if (!status)
        hbm_drop_once(operation);
    return status;
}

int hbm_wait_once(uint64_t operation, uintptr_t request)
{
    int status = hbm_wait(hbm_numbered(operation), request);
    if (!status)
        hbm_drop_once(operation);
    return status;
}
