/* What can go wrong, how a rank finds out, and how it tells the others.

   A communicator that failed stays failed: this rank touches no array of another any more, and says
   so to all; its own calls return the same status. `failed` is stored once: after the record, and
   before the rank uses memory again that others may still read. */
#include "comm.h"

#include <stdlib.h>

/* For others: this rank touches no array of theirs any more. */
static void say_stopped(hbm_comm *c)
{
    for (int r = 0; r < c->size; r++)
        atomic_store_explicit(&c->peers[r].control->stopped[c->rank], 1, memory_order_release);
}

/* Make known that this communicator is broken, and remember why. */
int hbm_fail(hbm_comm *c, const hbm_failure *why)
{
    if (c->failure.status)
        return c->failure.status;
    c->failure = *why;
    c->own->failure = *why;
    atomic_store_explicit(&c->own->failed, (uint32_t)why->status, memory_order_release);
    atomic_thread_fence(memory_order_release);
    say_stopped(c);
    hbm_ring(c);
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
} remembered;

/* Copies what a rank did as call `sequence`; 0 where it has not begun it, or holds a later one. */
static int recall(hbm_comm *c, int rank, uint64_t sequence, remembered *call)
{
    past_call *e = &c->peers[rank].control->history[sequence % HISTORY];
    if (atomic_load_explicit(&e->sequence, memory_order_acquire) != sequence)
        return 0;
    call->what = atomic_load_explicit(&e->what, memory_order_relaxed);
    call->count = atomic_load_explicit(&e->count, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&e->sequence, memory_order_relaxed) == sequence;
}

/* Names the first call in which this rank and another differ, of those that both remember. */
int hbm_mismatch(hbm_comm *c, int rank)
{
    uint64_t last = c->sequence, first = last < HISTORY ? 1 : last - HISTORY + 1;
    hbm_failure why = {.status = HBM_MISMATCH, .rank = c->rank, .other = rank};
    for (uint64_t s = last; s >= first; s--) {
        remembered mine, others;
        if (recall(c, c->rank, s, &mine) && recall(c, rank, s, &others)
            && (mine.what != others.what || mine.count != others.count)) {
            why.own_what = mine.what;
            why.own_count = mine.count;
            why.others_what = others.what;
            why.others_count = others.count;
        }
    }
    return hbm_fail(c, &why);
}

/* A rank that did another call than this one at the same point; -1 where there is none. Ranks whose
   posts this one does not read would else leave it waiting. */
static int stranger(hbm_comm *c)
{
    uint64_t s = c->head ? c->head->sequence : 0;
    remembered mine, others;
    if (!s || !recall(c, c->rank, s, &mine))
        return -1;
    for (int r = 0; r < c->size; r++)
        if (recall(c, r, s, &others) && (mine.what != others.what || mine.count != others.count))
            return r;
    return -1;
}

/* ---- ranks that are gone ---- */

static int is_alive(const hbm_comm *c, int rank)
{
    return !c->peers[rank].claim || hbm_is_taken(c->peers[rank].claim, c->boot);
}

/* Whether a rank that is waited for has left or died, any has failed, or one did another call. */
int hbm_trouble(hbm_comm *c, int rank, hbm_failure *why)
{
    for (int r = 0; r < c->size; r++) {
        const control *other = c->peers[r].control;
        if (r != c->rank && atomic_load_explicit(&other->failed, memory_order_acquire)
            && (other->failure.status != HBM_CLOSED || r == rank)) {
            *why = other->failure;
            return 1;
        }
    }
    *why = (hbm_failure){.status = HBM_PEER_DIED, .rank = rank, .other = c->rank};
    if (!is_alive(c, rank))
        return 1;
    int other = stranger(c);
    if (other < 0)
        return 0;
    hbm_mismatch(c, other);
    *why = c->failure;
    return 1;
}

/* Whether a rank gave up a call that is complete here: it may have used its memory for something else
   while this rank, or one that passed it on, read it. */
int hbm_was_left(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!hbm_reads_memory(o))
        return 0;
    atomic_thread_fence(memory_order_acquire); /* all that was read there was read before this */
    for (int r = 0; r < c->size; r++) {
        const control *other = c->peers[r].control;
        if (r != c->rank && atomic_load_explicit(&other->failed, memory_order_acquire)
            && atomic_load_explicit(&other->calls.value, memory_order_relaxed) < o->sequence) {
            hbm_failure why = other->failure;
            return hbm_fail(c, &why);
        }
    }
    return 0;
}

/* Others may still write into what a call that failed receives. */
void hbm_hold_back(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (!o->receives_in_arena || !o->received || !c->arrays)
        return;
    struct held *h = malloc(sizeof *h);
    uint64_t id = h ? hbm_heap_hold(c->arrays, o->recv_place, o->recv_place + o->received) : 0;
    if (!id) {
        free(h);
        return;
    }
    *h = (struct held){c->held, id};
    c->held = h;
}

int hbm_holds(const hbm_comm *c) { return c->held != NULL; }

void hbm_let_go(hbm_comm *c)
{
    while (c->held) {
        struct held *h = c->held;
        c->held = h->next;
        hbm_heap_release(c->arrays, h->id);
        free(h);
    }
}

int hbm_all_stopped(const hbm_comm *c)
{
    for (int r = 0; r < c->size; r++)
        if (r != c->rank && !atomic_load_explicit(&c->own->stopped[r], memory_order_acquire)
            && is_alive(c, r))
            return 0;
    return 1;
}

int hbm_failure_of(const hbm_comm *c, hbm_failure *failure)
{
    *failure = c->failure;
    return c->failure.status;
}
