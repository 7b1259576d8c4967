/* Operations that reduce data, on several hosts. Numbers are reduced in the order of the ranks of
   each host, and the results in the order of the hosts. Every entry is computed once, or from the
   same numbers on all hosts, so that all ranks get the same bits. */
#include "hierarchy.h"

#include <algorithm>
#include <cstring>

#include "blocks.h"

namespace hbmcomm {

/* Up to so many bytes one exchange of everything takes less time than two exchanges of pieces. */
static bool is_short(const at::Tensor &part) { return part.nbytes() <= 16 << 10; }

/* Bytes that a carrier sends to one host at once. */
static constexpr uint64_t piece_bytes = 128 << 10;

/* The piece of a carrier's part that each host reduces; all of it on each host if it is short. */
Hierarchy::Parts Hierarchy::pieces_of(const at::Tensor &part, uint64_t entry) const
{
    const uint64_t count = part.nbytes() / entry, hosts = layout_.hosts();
    if (is_short(part))
        return Parts(hosts, hbm_part{0, part.nbytes()});
    Parts pieces;
    for (uint64_t h = 0, begin = 0; h < hosts; h++) {
        const uint64_t end = count * (h + 1) / hosts;
        pieces.push_back({begin * entry, (end - begin) * entry});
        begin = end;
    }
    return pieces;
}

/* Sends other hosts their pieces, for fold_pieces(). */
void Hierarchy::send_pieces(Slice &slice)
{
    const uint64_t own = slice.pieces[layout_.host].bytes;
    slice.others = at::empty({static_cast<int64_t>(layout_.hosts() * own)}, at::kByte);
    Messages sent, received;
    for (size_t h = 0; h < layout_.hosts(); h++) {
        if (h == layout_.host)
            continue;
        const int other = layout_.counterpart(h);
        const hbm_part piece = slice.pieces[h];
        sent.push_back({other, address_of(slice.part) + piece.offset, piece.bytes});
        received.push_back({other, address_of(slice.others) + h * own, own});
    }
    wire_.start(sent, received);
}

/* Reduces this host's piece over all hosts, in its place. */
void Hierarchy::fold_pieces(const Slice &slice)
{
    wire_.finish(deadline_);
    const hbm_part own = slice.pieces[layout_.host];
    char *const result = static_cast<char *>(slice.part.data_ptr()) + own.offset;
    std::vector<const void *> in;
    for (size_t h = 0; h < layout_.hosts(); h++)
        in.push_back(static_cast<const char *>(slice.others.data_ptr()) + h * own.bytes);
    in[layout_.host] = result;
    hbm_call call = slice.call;
    call.count = own.bytes / core.hbm_dtype_size(call.dtype);
    core.hbm_fold(&call, in.data(), static_cast<int>(in.size()), result);
}

/* Sends the reduced piece to the hosts that need it. */
void Hierarchy::return_pieces(const Slice &slice)
{
    const bool rooted = slice.call.operation == HBM_REDUCE;
    const size_t root = rooted ? layout_.host_of[slice.call.root] : 0;
    const hbm_part own = slice.pieces[layout_.host];
    Messages sent, received;
    for (size_t h = 0; !is_short(slice.part) && h < layout_.hosts(); h++) {
        if (h == layout_.host)
            continue;
        const int other = layout_.counterpart(h);
        const hbm_part piece = slice.pieces[h];
        if (!rooted || h == root)
            sent.push_back({other, address_of(slice.part) + own.offset, own.bytes});
        if (!rooted || layout_.host == root)
            received.push_back({other, address_of(slice.part) + piece.offset, piece.bytes});
    }
    wire_.start(sent, received);
}

void Hierarchy::share(const Slice &slice)
{
    const uintptr_t part = address_of(slice.part);
    if (slice.call.operation == HBM_ALLREDUCE)
        gather_inside(HBM_ALLGATHERV, part, slice.call.recv, slice.parts);
    else if (is_here(slice.call.root))
        gather_inside(HBM_GATHERV, part, slice.call.recv, slice.parts,
                      layout_.index_of[slice.call.root]);
}

Hierarchy::Slice Hierarchy::slice_of(const hbm_call &call, uint64_t begin, uint64_t end)
{
    const uint64_t entry = core.hbm_dtype_size(call.dtype);
    Slice slice{call, {}, {}, {}, {}};
    slice.call.count = end - begin;
    slice.call.send += begin * entry;
    slice.call.recv += begin * entry;
    slice.parts = split(end - begin, entry);
    slice.part = reduce_inside(slice.call, slice.call.send, slice.parts);
    slice.pieces = pieces_of(slice.part, entry);
    return slice;
}

/* Allreduce and reduce. While one slice is reduced inside the host, others are on their way. */
void Hierarchy::reduce(const hbm_call &call)
{
    const uint64_t most = std::max<uint64_t>(piece_bytes * layout_.hosts() * layout_.carriers
                                             / core.hbm_dtype_size(call.dtype), 1);
    const uint64_t slices = std::max<uint64_t>((call.count + most - 1) / most, 1);
    const bool carries = layout_.is_carrier();
    std::deque<Slice> flying;
    struct Landing {
        Wire &wire;
        ~Landing() { wire.drop(); } /* after a failure inside the host, before slices are freed */
    } landing{wire_};
    for (uint64_t i = 0; i < slices + 2; i++) {
        if (i < slices) {
            flying.push_back(slice_of(call, i * most, std::min((i + 1) * most, call.count)));
            if (carries)
                send_pieces(flying.back());
        }
        if (carries && i >= 1 && i <= slices) {
            const Slice &slice = flying[flying.size() - (i < slices ? 2 : 1)];
            fold_pieces(slice);
            return_pieces(slice);
        }
        if (i >= 2) {
            if (carries)
                wire_.finish(deadline_);
            share(flying.front());
            flying.pop_front();
        }
    }
}

/* Carrier i reduces the blocks for ranks i, i + carriers and so on of every host. */
void Hierarchy::reduce_scatter(const hbm_call &call)
{
    const uint64_t block = bytes_of(call);
    const size_t ranks = layout_.inside().size(), step = layout_.carriers;
    Slice slice{call, Parts(ranks), {}, {}, {}};
    const at::Tensor sorted
        = at::empty({static_cast<int64_t>(layout_.host_of.size() * block)}, at::kByte);
    uint64_t end = 0;
    for (size_t carrier = 0; carrier < step; carrier++) {
        const uint64_t begin = end;
        for (const auto &there : layout_.members) {
            const uint64_t first = end;
            for (size_t i = carrier; i < there.size(); i += step, end += block)
                std::memcpy(sorted.data_ptr<uint8_t>() + end,
                            reinterpret_cast<const void *>(call.send + there[i] * block), block);
            if (carrier == layout_.index)
                slice.pieces.push_back({first - begin, end - first});
        }
        slice.parts[carrier] = {begin, end - begin};
    }
    slice.part = reduce_inside(call, address_of(sorted), slice.parts);
    if (layout_.is_carrier()) {
        send_pieces(slice);
        fold_pieces(slice);
    }

    Parts sent(ranks), received(ranks);
    for (size_t i = layout_.index; layout_.is_carrier() && i < ranks; i += step)
        sent[i] = {slice.pieces[layout_.host].offset + i / step * block, block};
    received[layout_.index % step] = {0, block};
    hbm_call last{};
    last.operation = HBM_ALLTOALLV;
    last.dtype = HBM_UINT8;
    last.count = sent[layout_.index].bytes;
    last.send = address_of(slice.part);
    last.send_parts = sent.data();
    last.recv = call.recv;
    last.recv_parts = received.data();
    inside(last);
}

} // namespace hbmcomm
