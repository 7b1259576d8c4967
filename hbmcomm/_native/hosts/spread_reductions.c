/* Operations that reduce data, on several hosts.

   Ranks of a host reduce among themselves in their order; then leaders reduce the results, in the
   order of the hosts where the algorithm lets them. Every entry is computed by one leader, or by
   all of them from the same numbers in the same order, so that all ranks get the same bits, in
   every run with the same hosts. A scan goes from rank to rank, whatever their hosts.

   Ordering: calls among the ranks of this host order what they reduce. */
#include "hosts/flights.h"
#include "hosts/spread.h"

#include "comm/failure.h"
#include "kernels/copy.h"

static int no_memory(hbm_hosts *h) { return hbm_blame(h->all, HBM_NO_MEMORY, h->all->rank); }

/* A call as that of the user, with its type and its function. */
static int reduce_inside(hbm_hosts *h, int operation, uint64_t count, uintptr_t send,
                         uintptr_t recv, int root, const hbm_part *parts)
{
    hbm_call call = h->o->call;
    call.operation = (uint8_t)operation;
    call.count = count;
    call.send = send;
    call.recv = recv;
    call.root = root;
    call.send_parts = parts;
    call.recv_parts = NULL;
    call.after_count = 0;
    return hbm_start_inside(h, &call);
}

/* The part of each rank of this host, in bytes from the first entry of the slice. */
static hbm_part *parts_here(hbm_hosts *h)
{
    hbm_range slice = slice_of(h);
    memset(h->sent_parts, 0, (size_t)ranks_on(h, h->host) * sizeof *h->sent_parts);
    for (int lane = 0; lane < h->leaders; lane++) {
        hbm_range part = lane_of(h, lane);
        h->sent_parts[h->index_of[hbm_leader_of(h, h->host, lane, h->root)]]
            = (hbm_part){(part.begin - slice.begin) * h->entry, (part.end - part.begin) * h->entry};
    }
    return h->sent_parts;
}

/* ---- reduce and allreduce ---- */

/* Where a leader has all entries, from the result of its host to that of all: in the memory that
   receives them, but the core cannot reduce and scatter in place. */
static int find_place(hbm_hosts *h)
{
    const hbm_call *call = &h->o->call;
    if (call->recv && (h->leaders == 1 || call->recv != call->send))
        h->at = (char *)call->recv;
    else if (h->lane >= 0)
        h->at = hbm_take(&h->own, h->o->block);
    else
        h->at = NULL;
    return h->at || h->lane < 0 ? HBM_OK : no_memory(h);
}

static int before_reduction(hbm_hosts *h, int turn)
{
    hbm_range slice = slice_of(h);
    uintptr_t from = h->o->call.send + slice.begin * h->entry;
    int status = h->slice ? HBM_OK : find_place(h);
    if (turn || status)
        return status;
    uintptr_t at = (uintptr_t)h->at + slice.begin * h->entry;
    if (h->inside->size == 1)
        return HBM_OK;
    if (h->leaders == 1)
        return reduce_inside(h, HBM_REDUCE, slice.end - slice.begin, from, h->lane == 0 ? at : 0,
                             first_leader(h), NULL);
    const hbm_part *parts = parts_here(h), *own = &parts[h->index];
    return reduce_inside(h, HBM_REDUCE_SCATTER, own->bytes / h->entry, from, at + own->offset, 0,
                         parts);
}

static int fly_reduction(hbm_hosts *h)
{
    int allreduce = h->o->call.operation == HBM_ALLREDUCE;
    if (h->lane < 0)
        return HBM_OK;
    uint64_t bytes = h->o->block;
    hbm_range part = lane_of(h, h->lane);
    hbm_flight *f = hbm_new_flight(h);
    f->steps = (hbm_schedule){
        .algorithm = allreduce ? hbm_choose_allreduce(h->algorithm, h->hosts,
                                                      bytes / (uint64_t)h->leaders)
                               : hbm_choose_reduce(h->algorithm, h->hosts, bytes, h->slices),
        .host = h->host, .hosts = h->hosts, .root = allreduce ? 0 : h->host_of[h->root],
        .count = part.end - part.begin};
    f->at = h->at + part.begin * h->entry;
    if (h->inside->size == 1)
        f->input = (const char *)h->o->call.send + part.begin * h->entry;
    f->in_turn = hbm_only_sends(&f->steps);
    return HBM_OK;
}

static int after_allreduce(hbm_hosts *h, int turn)
{
    hbm_range slice = slice_of(h);
    uintptr_t to = h->o->call.recv + slice.begin * h->entry;
    uint64_t bytes = (slice.end - slice.begin) * h->entry;
    if (turn || !bytes)
        return HBM_OK;
    if (h->leaders == 1)
        return move_inside(h, HBM_BCAST, bytes, to, to, first_leader(h), NULL, NULL);
    const hbm_part *parts = parts_here(h), *own = &parts[h->index];
    uintptr_t from = (uintptr_t)h->at + slice.begin * h->entry + own->offset;
    return move_inside(h, HBM_ALLGATHERV, own->bytes, from, to, 0, NULL, parts);
}

/* The root gets the parts of the other leaders of its host. */
static int after_reduce(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    int at_root = h->rank == call->root;
    if (turn || !is_here(h, call->root) || h->leaders == 1)
        return HBM_OK;
    hbm_range slice = slice_of(h);
    const hbm_part *parts = parts_here(h), *own = &parts[h->index];
    uintptr_t from = (uintptr_t)h->at + slice.begin * h->entry + own->offset;
    return move_inside(h, HBM_GATHERV, own->bytes, from,
                       at_root ? call->recv + slice.begin * h->entry : 0, first_leader(h), NULL,
                       at_root ? parts : NULL);
}

/* ---- reduce_scatter ---- */

static hbm_part block_of(const hbm_operation *o, int rank)
{
    return o->call.send_parts ? o->call.send_parts[rank]
                              : (hbm_part){(uint64_t)rank * o->block, o->block};
}

/* The blocks sorted by host: where they are, and how many bytes. */
static uintptr_t sorted_blocks(hbm_hosts *h, uint64_t *bytes)
{
    uint64_t end = 0;
    int is_sorted = 1;
    *bytes = 0;
    for (int i = 0; i < h->ranks; i++) {
        hbm_part block = block_of(h->o, h->members[i]);
        is_sorted &= !block.bytes || block.offset == end;
        end = block.offset + block.bytes;
        *bytes += block.bytes;
    }
    if (is_sorted)
        return h->o->call.send;
    char *at = hbm_take(&h->packed, *bytes), *to = at;
    for (int i = 0; at && i < h->ranks; i++) {
        hbm_part block = block_of(h->o, h->members[i]);
        hbm_copy(to, (const char *)h->o->call.send + block.offset, block.bytes);
        to += block.bytes;
    }
    return (uintptr_t)at;
}

/* The first leader of each host reduces the blocks of its host's ranks. */
static int before_reduce_scatter(hbm_hosts *h, int turn)
{
    uint64_t bytes;
    if (turn)
        return HBM_OK;
    uintptr_t from = sorted_blocks(h, &bytes);
    h->at = h->lane == 0 ? hbm_take(&h->own, bytes) : NULL;
    if ((!from && bytes) || (h->lane == 0 && !h->at))
        return no_memory(h);
    return reduce_inside(h, HBM_REDUCE, bytes / h->entry, from, (uintptr_t)h->at, first_leader(h),
                         NULL);
}

static int fly_reduce_scatter(hbm_hosts *h)
{
    uint64_t end = 0;
    for (int host = 0; host < h->hosts; host++) {
        h->pieces[host].begin = end;
        for (int i = h->first[host]; i < h->first[host + 1]; i++)
            end += block_of(h->o, h->members[i]).bytes / h->entry;
        h->pieces[host].end = end;
    }
    if (h->lane != 0)
        return HBM_OK;
    hbm_flight *f = hbm_new_flight(h);
    f->steps = (hbm_schedule){.algorithm = HBM_RING_SCATTER, .host = h->host, .hosts = h->hosts,
                              .pieces = h->pieces};
    f->at = h->at;
    return HBM_OK;
}

static int after_reduce_scatter(hbm_hosts *h, int turn)
{
    uint64_t at = h->pieces[h->host].begin * h->entry;
    if (turn)
        return HBM_OK;
    for (int i = 0; i < ranks_on(h, h->host); i++) {
        uint64_t bytes = block_of(h->o, h->members[h->first[h->host] + i]).bytes;
        h->sent_parts[i] = (hbm_part){at, bytes};
        at += bytes;
    }
    return move_inside(h, HBM_SCATTERV, h->sent_parts[h->index].bytes, (uintptr_t)h->at,
                       h->o->call.recv, first_leader(h), h->lane == 0 ? h->sent_parts : NULL, NULL);
}

/* ---- scan and exscan ---- */

/* Receives what the ranks before have reduced, adds this rank's entries, and sends the result
   on. */
static int fly_scan(hbm_hosts *h)
{
    const hbm_call *call = &h->o->call;
    int is_scan = call->operation == HBM_SCAN;
    hbm_range slice = slice_of(h);
    uint64_t bytes = (slice.end - slice.begin) * h->entry;
    char *send = (char *)call->send + slice.begin * h->entry;
    char *recv = (char *)call->recv + slice.begin * h->entry;
    hbm_flight *f = hbm_new_flight(h);
    f->lane = -1;
    f->steps = (hbm_schedule){.algorithm = HBM_CHAIN_REDUCE, .host = h->rank, .hosts = h->ranks,
                              .root = h->ranks - 1, .count = slice.end - slice.begin};
    f->input = send;
    f->at = is_scan ? recv : hbm_take(&f->result, bytes);
    f->kept = is_scan ? NULL : recv;
    if (!f->at && bytes)
        return no_memory(h);
    if (h->rank == 0 && is_scan && bytes)
        memmove(recv, send, bytes);
    return HBM_OK;
}

const hbm_spread hbm_spread_reductions[HBM_FOREIGN] = {
    [HBM_REDUCE] = {WHOLE, before_reduction, fly_reduction, after_reduce},
    [HBM_ALLREDUCE] = {SPLIT, before_reduction, fly_reduction, after_allreduce},
    [HBM_REDUCE_SCATTER_BLOCK] = {ONE, before_reduce_scatter, fly_reduce_scatter,
                                  after_reduce_scatter},
    [HBM_REDUCE_SCATTER] = {ONE, before_reduce_scatter, fly_reduce_scatter, after_reduce_scatter},
    [HBM_SCAN] = {WHOLE, NULL, fly_scan, NULL},
    [HBM_EXSCAN] = {WHOLE, NULL, fly_scan, NULL},
};
