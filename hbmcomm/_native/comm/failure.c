/* Failures: how a rank detects one, reports it to the others, and protects memory afterwards.

   A communicator that failed stays failed: this rank no longer accesses arrays of others, marks
   that in their `stopped`, and all its calls return the same status.

   Ordering: `failed` is stored once, with release, after the record in `failure` and before this
   rank reuses memory that others may still read. hbm_was_abandoned() reads `failed` after an
   acquire fence that follows all reads of that memory: if it finds 0, the memory was intact when it
   was read. `stopped` is stored with release after the last access, and loaded with acquire before
   the memory is reused.

   Models: comm/failure.pml, comm/private.pml, comm/recall.pml */
#include "comm/failure.h"

#include <sched.h>
#include <stdlib.h>

#include "comm/bell.h"
#include "comm/lock.h"

/* Shows others that this rank no longer accesses their arrays. */
static void mark_stopped(hbm_comm *c)
{
    for (int r = 0; r < c->size; r++)
        atomic_store_explicit(&c->peers[r].control->stopped[c->rank], 1, memory_order_release);
}

int hbm_fail(hbm_comm *c, const hbm_failure *why)
{
    if (c->failure.status)
        return c->failure.status;
    c->failure = *why;
    c->own->failure = *why;
    atomic_store_explicit(&c->own->failed, (uint32_t)why->status, memory_order_release);
    atomic_thread_fence(memory_order_release);
    mark_stopped(c);
    hbm_ring(c);
    if (c->by)
        c->by->fail(c);
    return why->status;
}

int hbm_blame(hbm_comm *c, int status, int rank)
{
    hbm_failure why = {.status = status, .rank = rank, .other = c->rank};
    return hbm_fail(c, &why);
}

int hbm_blame_lengths(hbm_comm *c, int rank, uint64_t given, uint64_t expected)
{
    hbm_failure why = {.status = HBM_TRUNCATED, .rank = c->rank, .other = rank,
                       .own_count = expected, .others_count = given};
    return hbm_fail(c, &why);
}

/* ---- calls that differ ---- */

typedef struct {
    uint64_t what, count;
} recorded_call;

/* The length that ranks compare. A dtype that another rank recorded may be any number. */
static uint64_t length_of(const recorded_call *call)
{
    uint64_t dtype = call->what >> 8 & 0xFF;
    if (!only_moves(call->what))
        return call->count;
    return dtype < HBM_DTYPES ? call->count * hbm_dtype_size((int)dtype) : UINT64_MAX;
}

static int differ(const recorded_call *a, const recorded_call *b)
{
    return compared_part(a->what) != compared_part(b->what) || length_of(a) != length_of(b);
}

/* Copies the record of a rank's call `sequence`; 0 where that call has not begun, or is too old. */
static int recall(hbm_comm *c, int rank, uint64_t sequence, recorded_call *call)
{
    past_call *e = &c->peers[rank].control->history[sequence % HISTORY];
    if (atomic_load_explicit(&e->sequence, memory_order_acquire) != sequence)
        return 0;
    call->what = atomic_load_explicit(&e->what, memory_order_relaxed);
    call->count = atomic_load_explicit(&e->count, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&e->sequence, memory_order_relaxed) == sequence;
}

/* Reports the first call in which this rank and another differ, of those that both have a record
   of; if there is none, this rank's last call and HBM_UNKNOWN_CALL. */
int hbm_mismatch(hbm_comm *c, int rank)
{
    uint64_t last = c->sequence, first = last < HISTORY ? 1 : last - HISTORY + 1;
    hbm_failure why = {.status = HBM_MISMATCH, .rank = c->rank, .other = rank,
                       .others_what = HBM_UNKNOWN_CALL};
    recorded_call latest;
    if (recall(c, c->rank, last, &latest)) {
        why.own_what = latest.what;
        why.own_count = latest.count;
    }
    for (uint64_t s = last; s >= first; s--) {
        recorded_call mine, others;
        if (recall(c, c->rank, s, &mine) && recall(c, rank, s, &others)
            && differ(&mine, &others)) {
            why.own_what = mine.what;
            why.own_count = mine.count;
            why.others_what = others.what;
            why.others_count = others.count;
        }
    }
    return hbm_fail(c, &why);
}

/* A rank that made a different call at the same point, or at one before that both have a record of,
   or -1. This rank may not read that rank's posts, and would otherwise wait for ever: that rank may
   be inside MPI, in an earlier call that this one did itself. */
static int differing_rank(hbm_comm *c)
{
    uint64_t last = c->head ? c->head->sequence : 0;
    recorded_call mine, others;
    for (uint64_t s = last; s && s + HISTORY > last; s--)
        for (int r = 0; r < c->size && recall(c, c->rank, s, &mine); r++)
            if (recall(c, r, s, &others) && differ(&mine, &others))
                return r;
    return -1;
}

/* Whether a rank has completed the call in which this one waits for a word of it. It stored all
   its words of that call before it recorded a later one, so a word that has not arrived never
   will: it made another call there, of which it may have no record any more. */
static int is_past(hbm_comm *c, const awaited *a)
{
    uint64_t s = c->head ? c->head->sequence : 0;
    if (!s || a->value != c->awaiting.value || a->target != c->awaiting.target)
        return 0; /* a wait for a flag, which belongs to no call */
    past_call *e = &c->peers[a->peer].control->history[s % HISTORY];
    return atomic_load_explicit(&e->sequence, memory_order_acquire) > s;
}

/* ---- ranks that left or died ---- */

static int is_rank(const hbm_comm *c, int32_t rank)
{
    return rank >= 0 && rank < c->size;
}

/* Copies the failure that another rank has recorded: its memory may hold anything. */
static void copy_failure(const hbm_comm *c, int rank, hbm_failure *why)
{
    *why = c->peers[rank].control->failure;
    if (why->status < HBM_MISMATCH || why->status > HBM_NO_MEMORY || !is_rank(c, why->rank)
        || !is_rank(c, why->other))
        *why = (hbm_failure){.status = HBM_GARBAGE, .rank = rank, .other = c->rank};
}

int hbm_is_alive(const hbm_comm *c, int rank)
{
    return !c->peers[rank].claim || hbm_is_claimed(c->peers[rank].claim, c->boot);
}

int hbm_find_failure(hbm_comm *c, int rank, hbm_failure *why)
{
    for (int r = 0; r < c->size; r++) {
        const control *other = c->peers[r].control;
        if (r == c->rank || !atomic_load_explicit(&other->failed, memory_order_acquire))
            continue;
        copy_failure(c, r, why);
        if (why->status != HBM_CLOSED || r == rank)
            return 1;
    }
    *why = (hbm_failure){.status = HBM_PEER_DIED, .rank = rank, .other = c->rank};
    if (!hbm_is_alive(c, rank))
        return 1;
    int other = differing_rank(c);
    if (other < 0)
        return 0;
    hbm_mismatch(c, other);
    *why = c->failure;
    return 1;
}

int hbm_cannot_arrive(hbm_comm *c, const awaited *a)
{
    hbm_failure why;
    if (!c->failure.status && hbm_find_failure(c, a->peer, &why) && !arrived(a))
        hbm_fail(c, &why); /* else the word arrived before its owner left */
    if (!c->failure.status && is_past(c, a) && !arrived(a))
        hbm_mismatch(c, a->peer);
    return c->failure.status;
}

int hbm_was_abandoned(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!o->reads_memory)
        return 0;
    atomic_thread_fence(memory_order_acquire); /* after all reads of others' memory */
    for (int r = 0; r < c->size; r++) {
        const control *other = c->peers[r].control;
        if (r != c->rank && atomic_load_explicit(&other->failed, memory_order_acquire)
            && atomic_load_explicit(&other->calls.value, memory_order_relaxed) < o->sequence) {
            hbm_failure why;
            copy_failure(c, r, &why);
            return hbm_fail(c, &why);
        }
    }
    return 0;
}

/* Waits until no rank writes into private memory of this one, which has failed: see private.c. */
static void await_writers(hbm_comm *c)
{
    atomic_thread_fence(memory_order_seq_cst);
    for (int r = 0; r < c->size; r++)
        while (r != c->rank
               && atomic_load_explicit(&c->peers[r].control->writing, memory_order_acquire)
                      == (uint32_t)c->rank + 1
               && hbm_is_alive(c, r))
            sched_yield();
}

void hbm_hold_back(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (o->is_written)
        await_writers(c);
    if (!o->receives_in_arena || !o->received || !c->arrays)
        return;
    struct held *h = malloc(sizeof *h);
    uint64_t id = h ? hbm_heap_hold(c->arrays, o->recv_offset, o->recv_offset + o->received) : 0;
    if (!id) {
        free(h);
        return;
    }
    *h = (struct held){c->held, id};
    c->held = h;
}

/* The communicator is locked while `held` is read or changed; a child of a fork releases nothing. */
static struct held *take_held(hbm_comm *c)
{
    if (hbm_enter_wait(c))
        return NULL;
    struct held *all = c->held;
    c->held = NULL;
    hbm_unlock(c);
    return all;
}

int hbm_has_held(hbm_comm *c)
{
    if (hbm_enter_wait(c))
        return 0;
    int has = c->held != NULL;
    hbm_unlock(c);
    return has;
}

/* Two threads may call this at once: each releases what it has taken. */
void hbm_release_held(hbm_comm *c)
{
    for (struct held *h = take_held(c), *next; h; h = next) {
        next = h->next;
        hbm_heap_release(c->arrays, h->id);
        free(h);
    }
}

int hbm_all_stopped(const hbm_comm *c)
{
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && !atomic_load_explicit(&c->own->stopped[r], memory_order_acquire)
            && hbm_is_alive(c, r))
            return 0;
    return 1;
}

int hbm_failure_of(const hbm_comm *c, hbm_failure *failure)
{
    *failure = c->failure;
    return c->failure.status;
}
