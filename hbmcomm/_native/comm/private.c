/* Reads and writes private memory of other ranks.

   The memory that a rank receives into is its program's again after a failure. So a rank shows in
   `writing` whom it writes to, and looks at that rank's `failed` before each part; a rank that fails
   waits until nobody writes to it.

   Ordering: the writer stores `writing`, the other rank `failed`; each then loads the other's word,
   with a fence of sequential consistency in between. So one of them sees the other: either nothing is
   written, or the other waits. `writing` is cleared with release after the last byte, and loaded with
   acquire.

   All ranks store `is_refused` as they open the communicator (comm.c), and load it in a call; they
   exchange messages between the two.

   Model: comm/private.pml */
#define _GNU_SOURCE
#include "comm/private.h"

#include <sys/uio.h>
#include <unistd.h>

#include "comm/failure.h"

#define READ_AT_ONCE (1u << 30) /* bytes of one system call */
#define WRITTEN_AT_ONCE (1u << 20) /* a rank that fails may have to wait for so many */

int hbm_is_reachable(uintptr_t memory, uint64_t bytes)
{
    char ends[2];
    struct iovec to = {ends, 2};
    struct iovec from[] = {{(void *)memory, 1}, {(void *)(memory + bytes - 1), 1}};
    return process_vm_readv(getpid(), &to, 1, from, 2, 0) == 2;
}

int hbm_reads_private(hbm_comm *c)
{
    if (c->reads_private < 0) {
        c->reads_private = c->same_pids;
        for (int r = 0; r < c->size; r++)
            c->reads_private &= !atomic_load_explicit(&c->peers[r].control->is_refused,
                                                      memory_order_relaxed);
    }
    return c->reads_private;
}

/* A rank whose memory cannot be reached: whether it died, or left its call and unmapped its memory. */
static int is_lost(hbm_comm *c, int rank)
{
    hbm_failure why;
    return hbm_find_failure(c, rank, &why) && hbm_fail(c, &why);
}

typedef ssize_t (*transfer)(pid_t, const struct iovec *, unsigned long, const struct iovec *,
                            unsigned long, unsigned long);

static ssize_t transferred(transfer move, pid_t pid, void *here, uint64_t there, uint64_t bytes)
{
    struct iovec local = {here, bytes}, remote = {(void *)there, bytes};
    return move(pid, &local, 1, &remote, 1, 0);
}

/* Where a page of this process is protected, the kernel refuses it: only a load or a store of the
   program calls the handler that opens the page. Returns the bytes read; less than 1 where the other
   rank's memory cannot be reached. */
static ssize_t read_some(pid_t pid, void *to, uint64_t from, uint64_t bytes)
{
    char part[PAGE];
    ssize_t read = transferred(process_vm_readv, pid, to, from, bytes);
    if (read > 0)
        return read;
    read = transferred(process_vm_readv, pid, part, from, bytes < PAGE ? bytes : PAGE);
    if (read > 0)
        memcpy(to, part, (size_t)read);
    return read;
}

int hbm_read_private(hbm_operation *o, int rank, uint64_t from, void *to, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t most = bytes - done < READ_AT_ONCE ? bytes - done : READ_AT_ONCE;
        ssize_t read = read_some(c->peers[rank].pid, (char *)to + done, from + done, most);
        if (read <= 0)
            return is_lost(c, rank) ? c->failure.status : hbm_blame(c, HBM_UNTRUSTED, rank);
        done += (uint64_t)read;
    }
    return HBM_OK;
}

/* Whether this rank may write to another one now. end_writing() follows in any case. */
static int begin_writing(hbm_comm *c, int rank)
{
    atomic_store_explicit(&c->own->writing, (uint32_t)rank + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return !atomic_load_explicit(&c->peers[rank].control->failed, memory_order_acquire);
}

static void end_writing(hbm_comm *c)
{
    atomic_store_explicit(&c->own->writing, 0, memory_order_release);
}

static ssize_t write_part(hbm_comm *c, int rank, const void *from, uint64_t to, uint64_t bytes)
{
    ssize_t written = 0;
    if (begin_writing(c, rank))
        written = transferred(process_vm_writev, c->peers[rank].pid, (void *)from, to, bytes);
    end_writing(c);
    return written;
}

/* As read_some(). A handler of this program runs while nobody waits for this rank to end its write. */
static ssize_t write_some(hbm_comm *c, int rank, const void *from, uint64_t to, uint64_t bytes)
{
    char part[PAGE];
    ssize_t written = write_part(c, rank, from, to, bytes);
    if (written > 0)
        return written;
    bytes = bytes < PAGE ? bytes : PAGE;
    memcpy(part, from, bytes);
    return write_part(c, rank, part, to, bytes);
}

int hbm_write_private(hbm_operation *o, int rank, uint64_t to, const void *from, uint64_t bytes)
{
    hbm_comm *c = o->comm;
    for (uint64_t done = 0; done < bytes;) {
        uint64_t most = bytes - done < WRITTEN_AT_ONCE ? bytes - done : WRITTEN_AT_ONCE;
        ssize_t written = write_some(c, rank, (const char *)from + done, to + done, most);
        if (written <= 0) {
            is_lost(c, rank);
            return 0;
        }
        done += (uint64_t)written;
    }
    return 1;
}
