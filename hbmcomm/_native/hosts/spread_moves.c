/* Operations that move data, on several hosts. Each byte goes over a link once.

   Barrier and Bcast go from leaders to leaders. Gather, scatter and allgather send the blocks of a
   host as one message, to or from its first leader, which packs them where they are not consecutive
   in memory. Blocks of an alltoall go from their senders to their receivers.

   Ordering: calls among the ranks of this host order what they move. */
#include "hosts/flights.h"
#include "hosts/spread.h"

#include "comm/failure.h"
#include "kernels/copy.h"
#include "kernels/shapes.h"

static int no_memory(hbm_hosts *h) { return hbm_blame(h->all, HBM_NO_MEMORY, h->all->rank); }

/* ---- barrier and bcast ---- */

static int meet(hbm_hosts *h, int turn)
{
    return turn ? HBM_OK : move_inside(h, HBM_BARRIER, 0, 0, 0, 0, NULL, NULL);
}

static int fly_barrier(hbm_hosts *h)
{
    if (h->lane != 0)
        return HBM_OK;
    hbm_flight *f = hbm_new_flight(h);
    f->steps = (hbm_schedule){.algorithm = HBM_MEET, .host = h->host, .hosts = h->hosts};
    f->at = hbm_take(&f->result, (uint64_t)h->hosts);
    return f->at ? HBM_OK : no_memory(h);
}

/* On the root's host the data is shared first. */
static int before_bcast(hbm_hosts *h, int turn)
{
    hbm_range slice = slice_of(h);
    if (turn || !is_here(h, h->root) || slice.begin == slice.end)
        return HBM_OK;
    uintptr_t at = h->o->call.recv + slice.begin;
    return move_inside(h, HBM_BCAST, slice.end - slice.begin, at, at, first_leader(h), NULL, NULL);
}

static int fly_bcast(hbm_hosts *h)
{
    if (h->lane < 0)
        return HBM_OK;
    hbm_range part = lane_of(h, h->lane);
    hbm_flight *f = hbm_new_flight(h);
    f->steps = (hbm_schedule){
        .algorithm = hbm_choose_bcast(h->algorithm, h->hosts, h->count, h->slices),
        .host = h->host, .hosts = h->hosts, .root = h->host_of[h->root],
        .count = part.end - part.begin};
    f->at = (char *)h->o->call.recv + part.begin;
    f->in_turn = hbm_only_sends(&f->steps);
    return HBM_OK;
}

/* Elsewhere when it has come: one leader's part after the other. */
static int after_bcast(hbm_hosts *h, int turn)
{
    hbm_range part = {0, 0};
    if (is_here(h, h->root))
        return HBM_OK;
    for (; turn < h->leaders && part.begin == part.end; turn++)
        part = lane_of(h, turn);
    h->turn = turn;
    if (part.begin == part.end)
        return HBM_OK;
    turn--;
    uintptr_t at = h->o->call.recv + part.begin;
    int leader = h->index_of[hbm_leader_of(h, h->host, turn, h->root)];
    return move_inside(h, HBM_BCAST, part.end - part.begin, at, at, leader, NULL, NULL);
}

/* ---- blocks ---- */

static hbm_part block_of(const hbm_part *parts, int rank, uint64_t bytes)
{
    return parts ? parts[rank] : (hbm_part){(uint64_t)rank * bytes, bytes};
}

static void blocks_here(const hbm_hosts *h, const hbm_part *parts, hbm_part *here)
{
    for (int i = 0; i < ranks_on(h, h->host); i++)
        here[i] = block_of(parts, h->members[h->first[h->host] + i], h->o->block);
}

/* Finds the blocks of each host in memory: the blocks of a host that have gaps get memory of their
   own. */
static int find_packs(hbm_hosts *h, const hbm_part *parts, uintptr_t memory)
{
    uint64_t packed = 0;
    for (int host = 0; host < h->hosts; host++) {
        uint64_t begin = 0, end = 0, bytes = 0;
        h->is_packed[host] = 0;
        for (int i = h->first[host]; i < h->first[host + 1]; i++) {
            hbm_part block = block_of(parts, h->members[i], h->o->block);
            if (!block.bytes)
                continue;
            h->is_packed[host] |= bytes && block.offset != end;
            begin = bytes ? begin : block.offset;
            end = block.offset + block.bytes;
            bytes += block.bytes;
        }
        h->packs[host] = (hbm_part){h->is_packed[host] ? packed : memory + begin, bytes};
        packed += h->is_packed[host] ? bytes : 0;
    }
    uintptr_t at = packed ? (uintptr_t)hbm_take(&h->packed, packed) : 0;
    for (int host = 0; host < h->hosts; host++)
        h->packs[host].offset += h->is_packed[host] ? at : 0;
    return packed && !at ? no_memory(h) : HBM_OK;
}

/* Copies the blocks of a host between memory and their pack. */
static void copy_pack(const hbm_hosts *h, int host, const hbm_part *parts, uintptr_t memory,
                      int packs)
{
    char *at = (char *)h->packs[host].offset;
    for (int i = h->first[host]; h->is_packed[host] && i < h->first[host + 1]; i++) {
        hbm_part block = block_of(parts, h->members[i], h->o->block);
        char *there = (char *)memory + block.offset;
        hbm_copy(packs ? at : there, packs ? there : at, block.bytes);
        at += block.bytes;
    }
}

/* The other hosts, the next one first: no two hosts begin with the same one. */
static int other_host(const hbm_hosts *h, int turn) { return (h->host + 1 + turn) % h->hosts; }

/* Whether only the root, and each rank for its own, knows the lengths of blocks. */
static int has_lengths(const hbm_hosts *h)
{
    return shape_of(h->o->call.operation)->lengths != HBM_EQUAL;
}

/* On a host without the root: the first leader gets the lengths of the blocks of its ranks, and
   memory for all of them. HBM_PENDING: that needs a call first. */
static int stage_blocks(hbm_hosts *h, int turn)
{
    int leads = h->index == first_leader(h), n = ranks_on(h, h->host);
    uint64_t *lengths = (uint64_t *)hbm_take(&h->lengths, (uint64_t)(n + 1) * sizeof *lengths);
    if (!lengths)
        return no_memory(h);
    if (!turn && has_lengths(h)) {
        lengths[n] = h->o->block;
        for (int i = 0; i < n; i++)
            h->received_parts[i] = (hbm_part){(uint64_t)i * sizeof *lengths, sizeof *lengths};
        return move_inside(h, HBM_GATHERV, sizeof *lengths, (uintptr_t)&lengths[n],
                           (uintptr_t)lengths, first_leader(h), NULL,
                           leads ? h->received_parts : NULL);
    }
    uint64_t end = 0;
    for (int i = 0; leads && i < n; i++) {
        h->sent_parts[i] = (hbm_part){end, has_lengths(h) ? lengths[i] : h->o->block};
        end += h->sent_parts[i].bytes;
    }
    h->packs[h->host].bytes = end;
    return leads && !hbm_take(&h->staged, end) ? no_memory(h) : HBM_OK;
}

/* On the root: messages to or from the first leader of each other host. */
static int exchange_packs(hbm_hosts *h, int sends)
{
    const hbm_call *call = &h->o->call;
    const hbm_part *parts = sends ? call->send_parts : call->recv_parts;
    uintptr_t memory = sends ? call->send : call->recv;
    int status = find_packs(h, parts, memory);
    hbm_flight *f = hbm_new_flight(h);
    for (int i = 0; i < h->hosts - 1 && !status; i++) {
        int host = other_host(h, i), leader = hbm_leader_of(h, host, 0, -1);
        uint64_t bytes = h->packs[host].bytes;
        if (sends)
            copy_pack(h, host, parts, memory, 1);
        if (bytes)
            status = sends ? hbm_send_to(h, f, leader, h->packs[host].offset, bytes)
                           : hbm_receive_from(h, f, leader, h->packs[host].offset, bytes);
    }
    return status;
}

static int before_gather(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    int at_root = h->rank == call->root, status;
    if (is_here(h, call->root)) {
        if (turn)
            return HBM_OK;
        if (at_root && (status = exchange_packs(h, 0)))
            return status;
        blocks_here(h, call->recv_parts, h->received_parts);
        return move_inside(h, HBM_GATHERV, h->o->block, call->send, call->recv,
                           h->index_of[call->root], NULL, at_root ? h->received_parts : NULL);
    }
    if (turn == 1 + has_lengths(h))
        return HBM_OK;
    if ((status = stage_blocks(h, turn)))
        return status;
    int leads = h->index == first_leader(h);
    return move_inside(h, HBM_GATHERV, h->o->block, call->send,
                       leads ? (uintptr_t)h->staged.at : 0, first_leader(h), NULL,
                       leads ? h->sent_parts : NULL);
}

static int fly_gather(hbm_hosts *h)
{
    if (is_here(h, h->o->call.root) || h->lane != 0)
        return HBM_OK;
    hbm_flight *f = hbm_new_flight(h);
    return hbm_send_to(h, f, h->o->call.root, (uintptr_t)h->staged.at, h->packs[h->host].bytes);
}

static int after_gather(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    for (int host = 0; h->rank == call->root && host < h->hosts; host++)
        if (host != h->host)
            copy_pack(h, host, call->recv_parts, call->recv, 0);
    (void)turn;
    return HBM_OK;
}

static int before_scatter(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    int at_root = h->rank == call->root, status;
    if (!is_here(h, call->root))
        return turn < 1 + has_lengths(h) ? stage_blocks(h, turn) : HBM_OK;
    if (turn)
        return HBM_OK;
    if (at_root && (status = exchange_packs(h, 1)))
        return status;
    blocks_here(h, call->send_parts, h->sent_parts);
    return move_inside(h, HBM_SCATTERV, h->o->block, call->send, call->recv,
                       h->index_of[call->root], at_root ? h->sent_parts : NULL, NULL);
}

static int fly_scatter(hbm_hosts *h)
{
    if (is_here(h, h->o->call.root) || h->lane != 0)
        return HBM_OK;
    hbm_flight *f = hbm_new_flight(h);
    return hbm_receive_from(h, f, h->o->call.root, (uintptr_t)h->staged.at,
                            h->packs[h->host].bytes);
}

static int after_scatter(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    int leads = h->index == first_leader(h);
    if (turn || is_here(h, call->root))
        return HBM_OK;
    return move_inside(h, HBM_SCATTERV, h->o->block, leads ? (uintptr_t)h->staged.at : 0,
                       call->recv, first_leader(h), leads ? h->sent_parts : NULL, NULL);
}

/* Each rank chooses where it receives a block, so that what has gaps is packed on each. */
static int before_allgather(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    if (turn)
        return HBM_OK;
    blocks_here(h, call->recv_parts, h->received_parts);
    return move_inside(h, HBM_ALLGATHERV, h->o->block, call->send, call->recv, 0, NULL,
                       h->received_parts);
}

static int fly_allgather(hbm_hosts *h)
{
    const hbm_call *call = &h->o->call;
    int status = find_packs(h, call->recv_parts, call->recv);
    if (status || h->lane != 0)
        return status;
    copy_pack(h, h->host, call->recv_parts, call->recv, 1);
    for (int host = 0; host < h->hosts; host++)
        h->pieces[host] = (hbm_range){h->packs[host].offset,
                                      h->packs[host].offset + h->packs[host].bytes};
    hbm_flight *f = hbm_new_flight(h); /* its entries are bytes from address 0 on */
    f->steps = (hbm_schedule){.algorithm = HBM_RING_GATHER, .host = h->host, .hosts = h->hosts,
                              .pieces = h->pieces};
    return HBM_OK;
}

static int after_allgather(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    if (turn)
        copy_pack(h, other_host(h, turn - 1), call->recv_parts, call->recv, 0);
    if (turn == h->hosts - 1)
        return HBM_OK;
    const hbm_part *pack = &h->packs[other_host(h, turn)];
    if (!pack->bytes) {
        h->turn++;
        return after_allgather(h, turn + 1);
    }
    return move_inside(h, HBM_BCAST, pack->bytes, pack->offset, pack->offset, first_leader(h), NULL,
                       NULL);
}

/* A block to or from each rank of a host. */
static int exchange_blocks(hbm_hosts *h, hbm_flight *f, int host, int sends)
{
    const hbm_call *call = &h->o->call;
    int status = HBM_OK;
    for (int i = h->first[host]; i < h->first[host + 1] && !status; i++) {
        int rank = h->members[i];
        hbm_part b = block_of(sends ? call->send_parts : call->recv_parts, rank, h->o->block);
        status = sends ? hbm_send_to(h, f, rank, call->send + b.offset, b.bytes)
                       : hbm_receive_from(h, f, rank, call->recv + b.offset, b.bytes);
    }
    return status;
}

static int before_alltoall(hbm_hosts *h, int turn)
{
    const hbm_call *call = &h->o->call;
    if (turn)
        return HBM_OK;
    hbm_flight *f = hbm_new_flight(h);
    int status = HBM_OK;
    for (int i = 0; i < h->hosts - 1 && !status; i++)
        status = exchange_blocks(h, f, other_host(h, i), 0);
    for (int i = 0; i < h->hosts - 1 && !status; i++)
        status = exchange_blocks(h, f, other_host(h, i), 1);
    if (status)
        return status;
    blocks_here(h, call->send_parts, h->sent_parts);
    blocks_here(h, call->recv_parts, h->received_parts);
    return move_inside(h, HBM_ALLTOALLV, h->sent_parts[h->index].bytes, call->send, call->recv, 0,
                       h->sent_parts, h->received_parts);
}

const hbm_spread hbm_spread_moves[HBM_REDUCE] = {
    [HBM_BARRIER] = {ONE, meet, fly_barrier, meet},
    [HBM_BCAST] = {WHOLE, before_bcast, fly_bcast, after_bcast},
    [HBM_GATHER] = {ONE, before_gather, fly_gather, after_gather},
    [HBM_GATHERV] = {ONE, before_gather, fly_gather, after_gather},
    [HBM_SCATTER] = {ONE, before_scatter, fly_scatter, after_scatter},
    [HBM_SCATTERV] = {ONE, before_scatter, fly_scatter, after_scatter},
    [HBM_ALLGATHER] = {ONE, before_allgather, fly_allgather, after_allgather},
    [HBM_ALLGATHERV] = {ONE, before_allgather, fly_allgather, after_allgather},
    [HBM_ALLTOALL] = {ONE, before_alltoall, NULL, NULL},
    [HBM_ALLTOALLV] = {ONE, before_alltoall, NULL, NULL},
};
