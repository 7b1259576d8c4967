/* Operations that move data, on several hosts. */
#include "hierarchy.h"

namespace hbmcomm {

static Message message(int rank, uintptr_t memory, hbm_part part)
{
    return {rank, memory + part.offset, part.bytes};
}

/* Hosts that have the data send it to as many that have not. */
void Hierarchy::broadcast(const hbm_call &call)
{
    const size_t hosts = layout_.hosts(), from = layout_.host_of[call.root];
    if (is_here(call.root)) {
        hbm_call first = call;
        first.root = static_cast<int32_t>(layout_.index_of[call.root]);
        inside(first);
    }
    const Parts parts = split(bytes_of(call), 1);
    const hbm_part own = parts[layout_.index];
    const size_t turn = (layout_.host + hosts - from) % hosts;
    const auto part_of = [&](size_t other) {
        return Messages{message(layout_.counterpart((other + from) % hosts), call.recv, own)};
    };
    for (size_t reached = 1; layout_.is_carrier() && reached < hosts; reached *= 2) {
        if (turn < reached && turn + reached < hosts)
            exchange(part_of(turn + reached), {});
        else if (turn >= reached && turn < 2 * reached)
            exchange({}, part_of(turn - reached));
    }
    if (!is_here(call.root))
        gather_inside(HBM_ALLGATHERV, call.recv + own.offset, call.recv, parts);
}

/* Carrier i exchanges the blocks of ranks i, i + carriers and so on of every host. All blocks are
   received where they belong, and shared from there. */
void Hierarchy::allgather(const hbm_call &call)
{
    const size_t ranks = layout_.inside().size(), step = layout_.carriers;
    const auto part = [&](int rank) {
        return call.recv_parts ? call.recv_parts[rank]
                               : hbm_part{rank * bytes_of(call), bytes_of(call)};
    };
    Parts parts;
    for (const int rank : layout_.inside())
        parts.push_back(part(rank));
    gather_inside(HBM_ALLGATHERV, call.send, call.recv, parts);

    Messages sent, received;
    for (size_t h = 0; layout_.is_carrier() && h < layout_.hosts(); h++) {
        if (h == layout_.host)
            continue;
        const auto &there = layout_.members[h];
        const int other = layout_.counterpart(h);
        for (size_t i = layout_.index; i < ranks; i += step)
            sent.push_back(message(other, call.recv, parts[i]));
        for (size_t i = layout_.index; i < there.size(); i += step)
            received.push_back(message(other, call.recv, part(there[i])));
    }
    exchange(sent, received);

    for (size_t h = 0; h < layout_.hosts(); h++) {
        const auto &there = layout_.members[h];
        for (size_t first = 0; h != layout_.host && first < there.size(); first += step) {
            Parts came(ranks);
            for (size_t i = 0; i < step && first + i < there.size(); i++)
                came[i] = part(there[first + i]);
            gather_inside(HBM_ALLGATHERV, call.recv + came[layout_.index].offset, call.recv, came);
        }
    }
}

/* Whether a block that is sent overlaps one that is received. */
static bool overlap(const hbm_call &call, size_t ranks)
{
    for (size_t i = 0; i < ranks; i++)
        for (size_t j = 0; j < ranks; j++) {
            const Message a = message(0, call.send, call.send_parts[i]);
            const Message b = message(0, call.recv, call.recv_parts[j]);
            if (a.bytes && b.bytes && a.address < b.address + b.bytes
                && b.address < a.address + a.bytes)
                return true;
        }
    return false;
}

/* Gatherv, scatterv and alltoallv: every block goes from its sender to its receiver. */
void Hierarchy::move_directly(const hbm_call &call)
{
    const bool all = call.operation == HBM_ALLTOALLV;
    if (all && overlap(call, layout_.host_of.size()))
        throw Failed{HBM_COPY_FIRST};
    const hbm_part whole{0, bytes_of(call)};
    hbm_call here = call;
    here.root = static_cast<int32_t>(layout_.index_of[call.root]);
    Parts sent_here, received_here;
    Messages sent, received;
    for (int rank = 0; rank < static_cast<int>(layout_.host_of.size()); rank++) {
        const bool is_distant_root = !all && rank == call.root && !is_here(rank);
        if (call.send_parts && is_here(rank))
            sent_here.push_back(call.send_parts[rank]);
        else if (call.send_parts)
            sent.push_back(message(rank, call.send, call.send_parts[rank]));
        else if (is_distant_root && call.operation == HBM_GATHERV)
            sent.push_back(message(rank, call.send, whole));
        if (call.recv_parts && is_here(rank))
            received_here.push_back(call.recv_parts[rank]);
        else if (call.recv_parts)
            received.push_back(message(rank, call.recv, call.recv_parts[rank]));
        else if (is_distant_root && call.operation == HBM_SCATTERV)
            received.push_back(message(rank, call.recv, whole));
    }
    here.send_parts = call.send_parts ? sent_here.data() : nullptr;
    here.recv_parts = call.recv_parts ? received_here.data() : nullptr;
    if (all || is_here(call.root))
        inside(here);
    exchange(sent, received);
}

} // namespace hbmcomm
