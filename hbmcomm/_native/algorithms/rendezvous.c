/* Chooses offers, and takes what others offer.

   The post of another rank is read once and checked before it is used: it may only name memory of
   its owner.

   Ordering: a post is read after hbm_find_post() loaded its sequence with acquire. The `staging`
   word is stored with release before any post that offers staging buffers. A receiver stores
   `done` with release after its last read; the sender loads it with acquire before it reuses the
   memory.

   Model: algorithms/staging.pml */
#include "algorithms/rendezvous.h"

#include "comm/failure.h"
#include "algorithms/blocks.h"
#include "comm/posts.h"
#include "comm/private.h"

/* Whether others can reach the parts of an array, and the gaps between them. */
static int are_reachable(const hbm_operation *o, uintptr_t array,
                         hbm_part (*part_of)(const hbm_operation *, int))
{
    uint64_t first = UINT64_MAX, end = 0;
    for (int r = 0; r < o->comm->size; r++) {
        hbm_part part = part_of(o, r);
        if (!part.bytes)
            continue;
        first = part.offset < first ? part.offset : first;
        end = part.offset + part.bytes > end ? part.offset + part.bytes : end;
    }
    return end && hbm_is_reachable(array + first, end - first);
}

/* In some calls the sender has nothing else to do: it copies one piece into its staging buffers
   while the receivers copy another one out. That pays off among few ranks. */
static uint64_t least_to_fetch(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int idle = o->call.operation == HBM_BCAST || o->call.operation == HBM_GATHER
               || o->call.operation == HBM_GATHERV;
    return idle && c->groups.levels == 1 ? c->tuning.fetch_idle_bytes : c->tuning.fetch_bytes;
}

uint32_t hbm_choose_offer(hbm_operation *o, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    if (bytes <= (o->sends_from_arena ? eager_bytes(o) : short_bytes(o)))
        return IN_SLOT;
    if (o->sends_from_arena)
        return IN_ARENA;
    /* reduce kernels read their inputs themselves, so these must be mapped */
    int by_both = o->call.operation == HBM_BCAST && may_be_pushed(o);
    if (!shape_of(o->call.operation)->reduces && (by_both || bytes >= least_to_fetch(o))
        && hbm_reads_private(c)
        && are_reachable(o, o->call.send, part_for)) {
        o->send_at = o->call.send;
        return IN_PRIVATE;
    }
    o->send_at = c->staged;
    return IN_STAGING;
}

_Static_assert(STAGING_BYTES / PAGE < PAGE, "the number of pages goes into an offset's low bits");

int hbm_allocate_staging(hbm_operation *o, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    if (bytes <= c->staging_populated)
        return HBM_OK;
    if (c->staging == HBM_NOWHERE) {
        c->staging = hbm_heap_reserve(c->heap, STAGING_BYTES, PAGE);
        if (c->staging == HBM_NOWHERE)
            return hbm_blame(c, HBM_NO_MEMORY, c->rank);
    }
    if (hbm_heap_populate(c->heap, c->staging, c->staging + bytes))
        return hbm_blame(c, HBM_NO_MEMORY, c->rank);
    c->staging_populated = bytes;
    atomic_store_explicit(&c->own->staging.value, c->staging + (bytes + PAGE - 1) / PAGE,
                          memory_order_release);
    return HBM_OK;
}

/* An address in memory that another rank shares; NULL where it is outside. */
static unsigned char *within(unsigned char *memory, uint64_t room, uint64_t at, uint64_t offset,
                             uint64_t bytes)
{
    return at <= room && offset <= room - at && bytes <= room - at - offset ? memory + at + offset
                                                                            : NULL;
}

static int is_misaligned(const hbm_operation *o, uint64_t at)
{
    return shape_of(o->call.operation)->reduces && at % hbm_alignment(o->call.dtype);
}

void *hbm_array(hbm_operation *o, int rank, uint64_t at, uint64_t offset, uint64_t bytes)
{
    const peer *p = &o->comm->peers[rank];
    void *array = is_misaligned(o, at) ? NULL
                                       : within(p->arrays, p->array_bytes, at, offset, bytes);
    if (!array)
        hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    return array;
}

void *hbm_staged(hbm_operation *o, int rank, uint64_t offset, uint64_t bytes)
{
    const peer *p = &o->comm->peers[rank];
    uint64_t place = atomic_load_explicit(&p->control->staging.value, memory_order_acquire);
    uint64_t pages = place % PAGE, populated = pages * PAGE;
    void *staged = NULL;
    if (pages && offset <= populated && bytes <= populated - offset)
        staged = within(p->ordinary, p->ordinary_bytes, place - pages, offset, bytes);
    if (!staged)
        hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    return staged;
}

int hbm_receive(hbm_operation *o, int rank, const post *p, uint64_t offset, void *to,
                  uint64_t bytes)
{
    const volatile post *posted = p;
    uint64_t at = posted->send, all = posted->bytes;
    uint32_t flags = posted->flags;
    const void *from;
    if (!bytes)
        return HBM_OK;
    o->seen |= flags;
    count_from(o->comm, rank, bytes);
    if (flags & IN_PRIVATE)
        return hbm_read_private(o, rank, at + offset, to, bytes);
    if (flags & IN_ARENA)
        from = hbm_array(o, rank, at, offset, bytes);
    else
        from = within((unsigned char *)hbm_post_data(o, rank, p, 0, all), SLOT_BYTES, 0, offset,
                      bytes);
    if (!from)
        return o->comm->failure.status ? o->comm->failure.status
                                       : hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    copy_from(o, to, from, bytes);
    return HBM_OK;
}

uint32_t hbm_reception(hbm_operation *o)
{
    if (o->receives_in_arena)
        return REACHABLE | RECV_IN_ARENA;
    if (!may_be_pushed(o) || !o->received || !are_reachable(o, o->call.recv, part_from))
        return 0;
    o->is_written = 1;
    o->recv_at = o->call.recv;
    return REACHABLE;
}

int hbm_send_into(hbm_operation *o, int rank, const post *p, uint64_t offset, const void *from,
                  uint64_t bytes)
{
    const volatile post *posted = p;
    uint64_t at = posted->recv;
    if (!bytes)
        return 1;
    count_to(o->comm, rank, bytes);
    if (!(posted->flags & RECV_IN_ARENA))
        return hbm_write_private(o, rank, at + offset, from, bytes);
    void *to = hbm_array(o, rank, at, offset, bytes);
    if (to)
        (o->streaming ? hbm_stream : hbm_copy)(to, from, bytes);
    return to != NULL;
}

void hbm_done_receiving(hbm_operation *o)
{
    if (o->streaming)
        hbm_stream_end();
    if (o->seen & (IN_ARENA | IN_PRIVATE | IN_STAGING))
        signal_step(o, &o->comm->own->done, LAST_STEP);
}
