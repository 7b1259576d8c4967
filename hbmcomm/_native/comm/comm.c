/* Makes and frees the state of one rank in a communicator.

   Ordering: peers see a control block only after Python's exchange of addresses, so this file needs
   none for it. The last reference is dropped with acquire and release: the thread that frees the
   state sees all that other threads did with it. */
#define _GNU_SOURCE
#include "comm/comm.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>

#include "memory/fork.h"

/* Different ranks' words begin in different cache sets, so that one rank can cache all of them. */
static uint64_t colour(int rank) { return (uint64_t)(rank % COLOURS) * sizeof(post); }

static uint64_t aligned(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

/* A rank alone posts no data. */
uint64_t hbm_control_bytes(int ranks)
{
    uint64_t words = DATA_OFFSET + colour(COLOURS - 1);
    return aligned(ranks > 1 ? words + SLOTS * SLOT_BYTES : words);
}

uint64_t hbm_slot_bytes(void) { return SLOT_BYTES; }

static int is_sensible(const hbm_setup *setup)
{
    const hbm_tuning *t = &setup->tuning;
    return setup->size >= 1 && setup->size <= MAX_RANKS && setup->rank >= 0
           && setup->rank < setup->size && t->fan_in >= 2 && t->eager_bytes <= t->short_bytes
           && t->short_bytes <= SLOT_BYTES && t->piece_bytes >= LINE && t->piece_bytes % LINE == 0;
}

static void find_peers(hbm_comm *c, const hbm_setup *setup)
{
    c->same_pids = 1;
    c->reads_private = -1;
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
        c->same_pids &= from->pid > 0;
        c->elsewhere += c->groups.nodes.of[r] != c->groups.nodes.of[c->rank];
    }
    c->own = c->peers[c->rank].control;
}

/* The kernel looks at the permission before the address, at which there is nothing. */
static int may_reach(pid_t pid)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {NULL, 1};
    return process_vm_readv(pid, &to, 1, &from, 1, 0) >= 0 || errno == EFAULT;
}

/* Tries whether the kernel lets this rank reach the others' memory, and shows them the result. It
   refuses that to one of a child user namespace, and by default on some systems (Yama). */
static void try_private(hbm_comm *c)
{
    int may = c->same_pids;
    for (int r = 0; may && r < c->size; r++)
        may = may_reach(c->peers[r].pid);
    atomic_store_explicit(&c->own->is_refused, (uint32_t)!may, memory_order_relaxed);
}

hbm_comm *hbm_open(const hbm_setup *setup)
{
    if (!is_sensible(setup))
        return NULL;
    size_t n = (size_t)setup->size;
    hbm_comm *c = calloc(1, sizeof *c);
    /* a single rank has two outputs: its array and its staging buffer */
    size_t rank_bytes = sizeof *c->peers + sizeof *c->known + sizeof *c->in + sizeof *c->out
                        + sizeof *c->sleepers;
    void *lists = calloc(n + 1, rank_bytes);
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
    c->sleepers = (int *)(c->out + n + 1);
    c->rank = setup->rank;
    c->size = setup->size;
    c->oversubscribed = setup->oversubscribed;
    c->boot = setup->boot;
    c->tuning = setup->tuning;
    c->heap = setup->staging;
    c->arrays = setup->arrays;
    c->staging = HBM_NOWHERE;
    c->shared_room = shared_room_of(c->size);
    c->user_room = UINT64_MAX;
    c->forks = hbm_forks();
    atomic_store_explicit(&c->references, 1, memory_order_relaxed);
    find_peers(c, setup);
    try_private(c);
    return c;
}

void hbm_release(hbm_comm *c)
{
    if (atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) > 1)
        return;
    while (c->held) { /* never released: this rank did not see all ranks stop */
        struct held *h = c->held;
        c->held = h->next;
        free(h);
    }
    if (c->by)
        c->by->free(c);
    hbm_ungroup(&c->groups);
    free(c->peers);
    free(c);
}

void hbm_free(hbm_comm *c) { hbm_release(c); }

uint64_t hbm_staging(const hbm_comm *c) { return c->staging; }

uint64_t hbm_link_bytes(const hbm_comm *c) { return c->link_bytes; }

int hbm_awaited(const hbm_comm *c) { return c->awaiting.peer; }
