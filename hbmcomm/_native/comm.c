/* One rank's state of a communicator: made, and ended. */
#include "comm.h"

#include <stdlib.h>

#include "fork.h"

/* Each rank's words begin in other cache sets: whoever reads all of them finds room. */
static uint64_t colour(int rank) { return (uint64_t)(rank % COLOURS) * sizeof(post); }

static uint64_t aligned(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

uint64_t hbm_control_bytes(void)
{
    return aligned(DATA_OFFSET + colour(COLOURS - 1) + SLOTS * SLOT_BYTES);
}

uint64_t hbm_slot_bytes(void) { return SLOT_BYTES; }

static int is_sensible(const hbm_setup *setup)
{
    const hbm_tuning *t = &setup->tuning;
    return setup->size >= 1 && setup->size <= MAX_RANKS && setup->rank >= 0
           && setup->rank < setup->size && t->fan_in >= 2 && t->eager_bytes <= t->short_bytes
           && t->short_bytes <= SLOT_BYTES && t->piece_bytes >= LINE && t->piece_bytes % LINE == 0;
}

static void meet_peers(hbm_comm *c, const hbm_setup *setup)
{
    c->reads_private = 1;
    for (int r = 0; r < c->size; r++) {
        const hbm_peer *from = &setup->peers[r];
        c->peers[r] = (peer){.control = (control *)(from->control + colour(r)),
                             .ordinary = (unsigned char *)from->ordinary,
                             .arrays = (unsigned char *)from->arrays,
                             .ordinary_bytes = from->ordinary_bytes,
                             .array_bytes = from->array_bytes,
                             .claim = from->claim,
                             .pid = from->pid,
                             .node = c->groups.nodes.of[r]};
        c->reads_private &= from->pid > 0;
        c->elsewhere += c->groups.nodes.of[r] != c->groups.nodes.of[c->rank];
    }
    c->own = c->peers[c->rank].control;
}

hbm_comm *hbm_open(const hbm_setup *setup)
{
    if (!is_sensible(setup))
        return NULL;
    size_t n = (size_t)setup->size;
    hbm_comm *c = calloc(1, sizeof *c);
    /* a rank alone has two outputs: its own and its staging */
    void *lists = calloc(n + 1, sizeof *c->peers + sizeof *c->known + sizeof *c->in + sizeof *c->out);
    if (!c || !lists
        || !hbm_group_ranks(&c->groups, setup->rank, setup->size, setup->peers,
                            (int)setup->tuning.fan_in)) {
        free(lists);
        free(c);
        return NULL;
    }
    c->peers = lists;
    c->known = (uint64_t *)(c->peers + n);
    c->in = (const void **)(c->known + n);
    c->out = (void **)(c->in + n);
    c->rank = setup->rank;
    c->size = setup->size;
    c->oversubscribed = setup->oversubscribed;
    c->boot = setup->boot;
    c->tuning = setup->tuning;
    c->heap = setup->staging;
    c->arrays = setup->arrays;
    c->staging = HBM_NOWHERE;
    c->forks = hbm_forks();
    atomic_store_explicit(&c->references, 1, memory_order_relaxed);
    meet_peers(c, setup);
    return c;
}

/* Others who still wait for this rank learn that it has left; its own calls are refused. From here
   on the segments may go, unless another thread is inside a call (HBM_BUSY). */
int hbm_close(hbm_comm *c)
{
    int status = hbm_enter_call(c);
    if (status)
        return status;
    if (!c->is_closed) {
        c->is_closed = 1;
        hbm_blame(c, HBM_CLOSED, c->rank);
        hbm_progress(c);
        hbm_unlist(c);
        if (c->staging != HBM_NOWHERE)
            hbm_heap_give(c->heap, c->staging);
        c->staging = HBM_NOWHERE;
    }
    c->ring_later = 0; /* done by hbm_blame(); the words may be another communicator's now */
    hbm_leave_call(c);
    return HBM_OK;
}

void hbm_release(hbm_comm *c)
{
    if (atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) > 1)
        return;
    while (c->held) { /* held for good: nobody found that all had stopped */
        struct held *h = c->held;
        c->held = h->next;
        free(h);
    }
    hbm_ungroup(&c->groups);
    free(c->peers);
    free(c);
}

void hbm_free(hbm_comm *c) { hbm_release(c); }

uint64_t hbm_link_bytes(const hbm_comm *c) { return c->link_bytes; }
