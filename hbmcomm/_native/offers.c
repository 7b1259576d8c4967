/* Makes offers and takes what is offered; see offers.h.

   What another rank posted is read once and checked before it is used: it may name memory of its own
   alone. */
#define _GNU_SOURCE
#include "offers.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST_AT_ONCE (1u << 30) /* bytes of one system call */

/* Whether the kernel lets this memory be read from outside: it refuses that of devices. */
static int is_readable(uintptr_t memory, uint64_t bytes)
{
    char ends[2];
    struct iovec to = {ends, 2};
    struct iovec from[] = {{(void *)memory, 1}, {(void *)(memory + bytes - 1), 1}};
    return process_vm_readv(getpid(), &to, 1, from, 2, 0) == 2;
}

/* In some calls whoever gives has nothing else to do: it copies one piece into its staging buffers
   while those who take copy another out of them. That is worth while among few. */
static uint64_t least_to_fetch(const hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    int idle = o->call.operation == HBM_BCAST || o->call.operation == HBM_GATHER
               || o->call.operation == HBM_GATHERV;
    return idle && c->groups.levels == 1 ? c->tuning.fetch_idle_bytes : c->tuning.fetch_bytes;
}

/* How this rank offers `bytes` that it sends; what goes through the slot is not posted yet. */
uint32_t hbm_offer(hbm_operation *o, uint64_t bytes)
{
    const hbm_comm *c = o->comm;
    if (bytes <= (o->sends_from_arena ? c->tuning.eager_bytes : c->tuning.short_bytes))
        return IN_SLOT;
    if (o->sends_from_arena)
        return IN_ARENA;
    /* what is folded is read by the fold itself: it must be mapped */
    if (o->call.operation < HBM_REDUCE && c->reads_private && bytes >= least_to_fetch(o)
        && is_readable(o->call.send, bytes)) {
        o->send_at = o->call.send;
        return IN_PRIVATE;
    }
    o->send_at = c->staged;
    return IN_STAGING;
}

/* Staging buffers are had when they are first needed, and kept: in a loop they are needed again. */
int hbm_has_staging(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    if (c->staging == HBM_NOWHERE) {
        c->staging = hbm_heap_get(c->heap, STAGING_BYTES, PAGE);
        if (c->staging == HBM_NOWHERE)
            return hbm_blame(c, HBM_NO_MEMORY, c->rank);
        atomic_store_explicit(&c->own->staging.value, c->staging + 1, memory_order_release);
    }
    return HBM_OK;
}

/* A place in memory that another rank shares, NULL where it is none. */
static unsigned char *within(unsigned char *memory, uint64_t room, uint64_t at, uint64_t offset,
                             uint64_t bytes)
{
    return at <= room && offset <= room - at && bytes <= room - at - offset ? memory + at + offset
                                                                            : NULL;
}

static int is_misaligned(const hbm_operation *o, uint64_t at)
{
    return o->call.operation >= HBM_REDUCE && at % hbm_alignment(o->call.dtype);
}

/* Part of a rank's array in the arena; NULL, and the communicator fails, where there is no such. */
void *hbm_array(hbm_operation *o, int rank, uint64_t at, uint64_t offset, uint64_t bytes)
{
    const peer *p = &o->comm->peers[rank];
    void *found = is_misaligned(o, at) ? NULL
                                       : within(p->arrays, p->array_bytes, at, offset, bytes);
    if (!found)
        hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    return found;
}

/* Part of a rank's staging buffers; it has had them before this one reads there. */
void *hbm_staged(hbm_operation *o, int rank, uint64_t offset, uint64_t bytes)
{
    const peer *p = &o->comm->peers[rank];
    uint64_t at = atomic_load_explicit(&p->control->staging.value, memory_order_acquire) - 1;
    void *found = at % PAGE ? NULL : within(p->ordinary, p->ordinary_bytes, at, offset, bytes);
    if (!found)
        hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    return found;
}

static int read_private(hbm_operation *o, int rank, uint64_t from, void *to, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    for (uint64_t done = 0, n; done < bytes; done += n) {
        uint64_t most = bytes - done < MOST_AT_ONCE ? bytes - done : MOST_AT_ONCE;
        struct iovec local = {(char *)to + done, most}, remote = {(void *)(from + done), most};
        ssize_t read = process_vm_readv(c->peers[rank].pid, &local, 1, &remote, 1, 0);
        if (read <= 0) { /* it may have died, or left its call and unmapped its memory */
            hbm_failure why;
            return hbm_trouble(c, rank, &why) ? hbm_fail(c, &why)
                                              : hbm_blame(c, HBM_UNTRUSTED, rank);
        }
        n = (uint64_t)read;
    }
    return HBM_OK;
}

/* Takes part of what a rank offers in one piece. `offset` is from where its data begins. */
int hbm_take_from(hbm_operation *o, int rank, const post *p, uint64_t offset, void *to,
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
        return read_private(o, rank, at + offset, to, bytes);
    if (flags & IN_ARENA)
        from = hbm_array(o, rank, at, offset, bytes);
    else
        from = within((unsigned char *)hbm_data(o, rank, p, 0, all), SLOT_BYTES, 0, offset, bytes);
    if (!from)
        return o->comm->failure.status ? o->comm->failure.status
                                       : hbm_blame(o->comm, HBM_UNTRUSTED, rank);
    copy_from(o, to, from, bytes);
    return HBM_OK;
}

/* Tells those who offered by reference that this rank has taken all it needs. */
void hbm_done_taking(hbm_operation *o)
{
    if (o->streaming)
        hbm_stream_end();
    if (o->seen & (IN_ARENA | IN_PRIVATE | IN_STAGING))
        signal_step(o, &o->comm->own->done, LAST_STEP);
}
