/* One rank's state of a communicator: made, asked to run a call, and ended.

   A communicator serves one thread at a time and not the children of a fork; both are checked. */
#include "core.h"

#include <pthread.h>
#include <stdlib.h>

static unsigned forks; /* how often this process is the child of a fork since it loaded this */

static void count_fork(void) { forks++; }

static void watch_forks(void) { pthread_atfork(NULL, NULL, count_fork); }

hbm_comm *hbm_open(const hbm_setup *setup)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    size_t n = (size_t)setup->size;
    if (setup->size < 1 || setup->size > MAX_RANKS)
        return NULL;
    pthread_once(&once, watch_forks);
    hbm_comm *c = calloc(1, sizeof *c);
    char *room = c ? calloc(n + 1, sizeof *c->ranks + sizeof *c->segments + sizeof *c->claims
                                   + sizeof *c->in + sizeof *c->out + sizeof *c->nodes) : NULL;
    if (!room) {
        free(c);
        return NULL;
    }
    c->ranks = (control **)room;
    c->segments = (unsigned char **)(c->ranks + n);
    uintptr_t *claims = (uintptr_t *)(c->segments + n);
    c->in = (const void **)(claims + n);
    c->out = (void **)(c->in + n);
    c->nodes = (int *)(c->out + n + 1); /* a rank alone has two outputs: its own and its staging */
    for (size_t r = 0; r < n; r++) {
        c->segments[r] = (unsigned char *)setup->segments[r];
        c->ranks[r] = (control *)setup->segments[r];
        c->nodes[r] = setup->nodes[r];
        c->elsewhere += setup->nodes[r] != setup->nodes[setup->rank];
        claims[r] = setup->claims ? setup->claims[r] : 0;
    }
    c->claims = setup->claims ? claims : NULL;
    c->boot = setup->boot;
    c->rank = setup->rank;
    c->size = setup->size;
    c->own = c->ranks[c->rank];
    c->oversubscribed = setup->oversubscribed;
    c->lock = setup->lock;
    c->cache_bytes = setup->cache_bytes;
    c->segment_bytes = setup->segment_bytes;
    c->spins = c->oversubscribed ? 0 : 4096;
    c->yield_ns = c->oversubscribed ? 20 * 1000 : 500 * 1000;
    c->forks = forks;
    return c;
}

/* Others who still wait for this rank learn that it has left; its own calls are refused. From here
   on the segments may go, unless another thread is inside a call (HBM_BUSY). */
int hbm_close(hbm_comm *c)
{
    if (atomic_exchange_explicit(&c->busy, 1, memory_order_acquire))
        return HBM_BUSY;
    if (c->forks == forks && !c->failure.status) {
        hbm_failure left = {.status = HBM_CLOSED, .rank = c->rank, .other = c->rank};
        hbm_fail(c, &left);
    }
    atomic_store_explicit(&c->busy, 0, memory_order_release);
    return HBM_OK;
}

void hbm_free(hbm_comm *c)
{
    free(c->ranks);
    free(c);
}

static int serve(hbm_comm *c, const hbm_call *call)
{
    if (call->operation >= HBM_FOREIGN) {
        int status = hbm_post(c, call, NULL, 0);
        return status ? status : hbm_meet_all(c);
    }
    if (hbm_fits(c, call, c->oversubscribed ? SLOT_BYTES : SHORT_BYTES))
        return hbm_eager(c, call);
    int status = hbm_post(c, call, NULL, 0);
    if (!status)
        status = hbm_meet_all(c);
    if (!status)
        status = call->operation >= HBM_REDUCE ? hbm_reduce(c, call) : hbm_move(c, call);
    return status;
}

int hbm_run(hbm_comm *c, const hbm_call *call)
{
    if (!c || !call)
        return HBM_UNREADABLE;
    if (c->forks != forks)
        return HBM_FORKED;
    if (atomic_exchange_explicit(&c->busy, 1, memory_order_acquire))
        return HBM_BUSY;
    int status = c->failure.status;
    if (!status) {
        status = serve(c, call);
        if (c->ring_later)
            hbm_ring(c);
    }
    atomic_store_explicit(&c->busy, 0, memory_order_release);
    return status;
}

int hbm_failure_of(const hbm_comm *c, hbm_failure *failure)
{
    *failure = c->failure;
    return c->failure.status;
}

uint64_t hbm_link_bytes(const hbm_comm *c) { return c->link_bytes; }

uint64_t hbm_heap_offset(void) { return HEAP_OFFSET; }
