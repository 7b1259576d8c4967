/* Operations that reduce data, on several hosts. Numbers are reduced in the order of the ranks of
   each host, and the results in the order of the hosts; one rank computes each entry, so that all
   ranks get the same bits. */
#include "hosts/hierarchy.h"

#include <cstring>

#include "tensors/blocks.h"

namespace hbmcomm {

/* Up to so many bytes one exchange of everything takes less time than two exchanges of pieces. */
static constexpr uint64_t short_bytes = 16 << 10;

/* The piece of a carrier's part that each host reduces; all of it on each host if it is short. */
Hierarchy::Parts Hierarchy::pieces_of(const at::Tensor &part, uint64_t entry) const
{
    const uint64_t count = part.nbytes() / entry, hosts = layout_.hosts();
    if (part.nbytes() <= short_bytes)
        return Parts(hosts, hbm_part{0, part.nbytes()});
    Parts pieces;
    for (uint64_t h = 0, begin = 0; h < hosts; h++) {
        const uint64_t end = count * (h + 1) / hosts;
        pieces.push_back({begin * entry, (end - begin) * entry});
        begin = end;
    }
    return pieces;
}

/* Sends other hosts their pieces, and reduces this host's piece of all hosts, in its place. */
void Hierarchy::fold_pieces(const hbm_call &call, const at::Tensor &part, const Parts &pieces)
{
    const hbm_part own = pieces[layout_.host];
    const uintptr_t result = address_of(part) + own.offset;
    const auto room = static_cast<int64_t>(layout_.hosts() * own.bytes);
    const at::Tensor others = at::empty({room}, at::kByte);
    std::vector<const void *> in;
    Messages sent, received;
    for (size_t h = 0; h < layout_.hosts(); h++) {
        const bool is_own = h == layout_.host;
        const uintptr_t from = is_own ? result : address_of(others) + h * own.bytes;
        in.push_back(reinterpret_cast<const void *>(from));
        if (is_own)
            continue;
        const int other = layout_.counterpart(h);
        sent.push_back({other, address_of(part) + pieces[h].offset, pieces[h].bytes});
        received.push_back({other, from, own.bytes});
    }
    exchange(sent, received);
    hbm_call folded = call;
    folded.count = own.bytes / core.hbm_dtype_size(call.dtype);
    core.hbm_fold(&folded, in.data(), static_cast<int>(in.size()),
                  reinterpret_cast<void *>(result));
}

/* This rank's part of the array, reduced over all hosts: on all hosts, or on `only` one. */
at::Tensor Hierarchy::reduced_part(const hbm_call &call, const Parts &parts,
                                   std::optional<size_t> only)
{
    at::Tensor part = reduce_inside(call, call.send, parts);
    if (!layout_.is_carrier())
        return part;
    const Parts pieces = pieces_of(part, core.hbm_dtype_size(call.dtype));
    fold_pieces(call, part, pieces);
    if (part.nbytes() <= short_bytes)
        return part;
    const hbm_part own = pieces[layout_.host];
    Messages sent, received;
    for (size_t h = 0; h < layout_.hosts(); h++) {
        if (h == layout_.host)
            continue;
        const int other = layout_.counterpart(h);
        if (!only || h == *only)
            sent.push_back({other, address_of(part) + own.offset, own.bytes});
        if (!only || layout_.host == *only)
            received.push_back({other, address_of(part) + pieces[h].offset, pieces[h].bytes});
    }
    exchange(sent, received);
    return part;
}

void Hierarchy::allreduce(const hbm_call &call)
{
    const Parts parts = split(call.count, core.hbm_dtype_size(call.dtype));
    const at::Tensor part = reduced_part(call, parts, {});
    gather_inside(HBM_ALLGATHERV, address_of(part), call.recv, parts);
}

void Hierarchy::reduce(const hbm_call &call)
{
    const Parts parts = split(call.count, core.hbm_dtype_size(call.dtype));
    const at::Tensor part = reduced_part(call, parts, layout_.host_of[call.root]);
    if (is_here(call.root))
        gather_inside(HBM_GATHERV, address_of(part), call.recv, parts,
                      layout_.index_of[call.root]);
}

/* Carrier i reduces the blocks for ranks i, i + carriers and so on of every host. */
void Hierarchy::reduce_scatter(const hbm_call &call)
{
    const uint64_t block = bytes_of(call);
    const size_t ranks = layout_.inside().size(), step = layout_.carriers;
    const at::Tensor sorted
        = at::empty({static_cast<int64_t>(layout_.host_of.size() * block)}, at::kByte);
    Parts parts(ranks), pieces; /* of the carriers; of this carrier for each host */
    uint64_t end = 0;
    for (size_t carrier = 0; carrier < step; carrier++) {
        const uint64_t begin = end;
        for (const auto &there : layout_.members) {
            const uint64_t first = end;
            for (size_t i = carrier; i < there.size(); i += step, end += block)
                std::memcpy(sorted.data_ptr<uint8_t>() + end,
                            reinterpret_cast<const void *>(call.send + there[i] * block), block);
            if (carrier == layout_.index)
                pieces.push_back({first - begin, end - first});
        }
        parts[carrier] = {begin, end - begin};
    }
    const at::Tensor part = reduce_inside(call, address_of(sorted), parts);
    if (layout_.is_carrier())
        fold_pieces(call, part, pieces);

    Parts sent(ranks), received(ranks);
    for (size_t i = layout_.index; layout_.is_carrier() && i < ranks; i += step)
        sent[i] = {pieces[layout_.host].offset + i / step * block, block};
    received[layout_.index % step] = {0, block};
    hbm_call last{};
    last.operation = HBM_ALLTOALLV;
    last.dtype = HBM_UINT8;
    last.count = sent[layout_.index].bytes;
    last.send = address_of(part);
    last.send_parts = sent.data();
    last.recv = call.recv;
    last.recv_parts = received.data();
    inside(last);
}

} // namespace hbmcomm
