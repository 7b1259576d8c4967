#include "hierarchy.h"

#include <algorithm>

#include "blocks.h"

namespace hbmcomm {

/* Bytes of a part below which one more carrier costs more than it saves. */
static constexpr uint64_t least_part = 64 << 10;

Hierarchy::Hierarchy(hbm_comm *inside, Layout layout, c10::intrusive_ptr<c10d::Backend> gloo)
    : comm_(inside), layout_(std::move(layout)), wire_(std::move(gloo))
{
}

int Hierarchy::run(const hbm_call &call, Clock::time_point deadline)
{
    deadline_ = deadline;
    try {
        dispatch(call);
    } catch (const Failed &failed) {
        return failed.status;
    }
    return HBM_OK;
}

void Hierarchy::dispatch(const hbm_call &call)
{
    switch (call.operation) {
    case HBM_BARRIER: return barrier();
    case HBM_BCAST: return broadcast(call);
    case HBM_ALLGATHER:
    case HBM_ALLGATHERV: return allgather(call);
    case HBM_GATHERV:
    case HBM_SCATTERV:
    case HBM_ALLTOALLV: return move_directly(call);
    case HBM_ALLREDUCE:
    case HBM_REDUCE: return reduce(call);
    case HBM_REDUCE_SCATTER_BLOCK: return reduce_scatter(call);
    default: throw Failed{HBM_UNREADABLE};
    }
}

uint64_t bytes_of(const hbm_call &call) { return call.count * core.hbm_dtype_size(call.dtype); }

void Hierarchy::inside(const hbm_call &call)
{
    if (const int status = core.hbm_run(comm_, &call))
        throw Failed{status};
}

/* The parts of an array that the carriers exchange. */
Hierarchy::Parts Hierarchy::split(uint64_t count, uint64_t entry) const
{
    const auto parts = std::clamp<uint64_t>(count * entry / least_part, 1, layout_.carriers);
    Parts found(layout_.inside().size());
    for (uint64_t i = 0, begin = 0; i < parts; i++) {
        const uint64_t end = count * (i + 1) / parts;
        found[i] = {begin * entry, (end - begin) * entry};
        begin = end;
    }
    return found;
}

/* Gathers a part from each rank of this host, on the root or on all. */
void Hierarchy::gather_inside(hbm_operation_code operation, uintptr_t send, uintptr_t recv,
                              const Parts &parts, size_t root)
{
    hbm_call call{};
    call.operation = operation;
    call.dtype = HBM_UINT8;
    call.root = static_cast<int32_t>(root);
    call.count = parts[layout_.index].bytes;
    call.send = send;
    if (operation == HBM_ALLGATHERV || root == layout_.index) {
        call.recv = recv;
        call.recv_parts = parts.data();
    }
    inside(call);
}

/* This rank's part of `from`, reduced over the ranks of this host. */
at::Tensor Hierarchy::reduce_inside(const hbm_call &call, uintptr_t from, const Parts &parts)
{
    const uint64_t bytes = parts[layout_.index].bytes;
    at::Tensor part = at::empty({static_cast<int64_t>(bytes)}, at::kByte);
    hbm_call first = call;
    first.operation = HBM_REDUCE_SCATTER;
    first.root = 0;
    first.count = bytes / core.hbm_dtype_size(call.dtype);
    first.send = from;
    first.send_parts = parts.data();
    first.recv = address_of(part);
    inside(first);
    return part;
}

void Hierarchy::exchange(const Messages &sent, const Messages &received)
{
    wire_.start(sent, received);
    wire_.finish(deadline_);
}

void Hierarchy::barrier()
{
    hbm_call call{};
    call.operation = HBM_BARRIER;
    inside(call);
    const at::Tensor bytes = at::zeros({static_cast<int64_t>(layout_.hosts())}, at::kByte);
    const uintptr_t own = address_of(bytes) + layout_.host;
    Messages sent, received;
    for (size_t h = 0; layout_.index == 0 && h < layout_.hosts(); h++)
        if (h != layout_.host) {
            sent.push_back({layout_.counterpart(h), own, 1});
            received.push_back({layout_.counterpart(h), address_of(bytes) + h, 1});
        }
    exchange(sent, received);
    inside(call);
}

} // namespace hbmcomm
