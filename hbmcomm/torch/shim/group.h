/* A process group on the C core: torch's operations become calls of the core.

   What the core has no code for (messages between two ranks, sparse tensors, monitored barriers)
   goes to a companion group of gloo. Where ranks are on several hosts, that carries the core's messages
   between hosts too. */
#pragma once

#include <functional>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "blocks.h"
#include "codes.h"
#include "queue.h"
#include "work.h"
#include "gloo_wire.h"

namespace hbmcomm {

using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using TensorLists = std::vector<Tensors>;
using Milliseconds = std::chrono::milliseconds;

/* What Python gives a group. */
struct Opening {
    uintptr_t comm;   /* hbm_comm * of this host's ranks */
    uintptr_t arrays; /* hbm_heap * of this rank's part of the arena */
    uintptr_t base;   /* the address of that part */
    uint64_t bytes;
    std::function<std::string(int status)> explain; /* why a call failed */
    std::function<void()> close;                    /* leaves the communicator */
    c10::intrusive_ptr<c10d::Backend> companion;
    std::vector<int32_t> host_of; /* of each rank */
    std::vector<int32_t> leading; /* the ranks of each host in the order in which they lead */
    int32_t leaders;              /* of each host: ranks that talk to other hosts */
};

class Group : public c10d::Backend {
public:
    Group(int rank, int size, Milliseconds timeout, Opening opening);
    ~Group() override;

    /* Frees sockets, threads and memory, once. c10 calls this when the last strong pointer is gone;
       the destructor runs later, with the last weak one. */
    void release_resources() override;

    const std::string getBackendName() const override { return "hbm"; }
    c10::intrusive_ptr<Options> getBackendOptions() override { return options_; }
    void setTimeout(Milliseconds timeout) override { options_->timeout = timeout; }
    c10d::ErrorType getError() override { return c10d::ErrorType::SUCCESS; }
    void setSequenceNumberForGroup() override {}
    uint64_t getSequenceNumberForGroup() override { return sequence_; }
    void abort() override;
    void shutdown() override;

    bool supportsTensorAlloc(c10::DeviceIndex) override { return true; }
    at::Tensor allocateTensor(long size, at::TensorOptions options) override;
    bool is_in_arena(uintptr_t address) const;

    /* The handle of the bare operators; the registry sets it. */
    int64_t number() const { return number_; }
    void set_number(int64_t number) { number_ = number; }

    WorkPtr broadcast(Tensors &, const c10d::BroadcastOptions &) override;
    WorkPtr allreduce(Tensors &, const c10d::AllreduceOptions &) override;
    WorkPtr allreduce_sparse(Tensors &, const c10d::AllreduceOptions &) override;
    WorkPtr allreduce_coalesced(Tensors &, const c10d::AllreduceCoalescedOptions &) override;
    WorkPtr reduce(Tensors &, const c10d::ReduceOptions &) override;
    WorkPtr allgather(TensorLists &, Tensors &, const c10d::AllgatherOptions &) override;
    WorkPtr _allgather_base(at::Tensor &, at::Tensor &, const c10d::AllgatherOptions &) override;
    WorkPtr allgather_coalesced(TensorLists &, Tensors &, const c10d::AllgatherOptions &) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &, Tensors &,
                                            const c10d::AllgatherOptions &) override;
    WorkPtr gather(TensorLists &, Tensors &, const c10d::GatherOptions &) override;
    WorkPtr gather_into_tensor(at::Tensor &, at::Tensor &, const c10d::GatherOptions &);
    WorkPtr scatter(Tensors &, TensorLists &, const c10d::ScatterOptions &) override;
    WorkPtr reduce_scatter(Tensors &, TensorLists &, const c10d::ReduceScatterOptions &) override;
    WorkPtr _reduce_scatter_base(at::Tensor &, at::Tensor &,
                                 const c10d::ReduceScatterOptions &) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &, Tensors &,
                                            const c10d::ReduceScatterOptions &) override;
    WorkPtr alltoall_base(at::Tensor &, at::Tensor &, std::vector<int64_t> &,
                          std::vector<int64_t> &, const c10d::AllToAllOptions &) override;
    WorkPtr alltoall(Tensors &, Tensors &, const c10d::AllToAllOptions &) override;
    WorkPtr barrier(const c10d::BarrierOptions &) override;
    void monitoredBarrier(const c10d::BarrierOptions &, bool) override;
    WorkPtr send(Tensors &, int, int) override;
    WorkPtr recv(Tensors &, int, int) override;
    WorkPtr recvAnysource(Tensors &, int) override;

    /* The operations themselves: each returns when it is complete on this rank. */
    struct Limit {
        const char *name;
        Milliseconds timeout;
    };
    void check_root(const char *name, int64_t root) const;
    void run_broadcast(const at::Tensor &, int64_t root, Limit);
    void run_allreduce(const at::Tensor &, const c10d::ReduceOp &, Limit);
    void run_allgather(const at::Tensor &output, const at::Tensor &input, Limit);
    void run_alltoall(const at::Tensor &output, const at::Tensor &input,
                      const std::vector<int64_t> &output_splits,
                      const std::vector<int64_t> &input_splits, Limit);
    void run_reduce_scatter(const at::Tensor &output, const at::Tensor &input,
                            const c10d::ReduceOp &, Limit);

    /* Runs `act(limit)` in its turn, and returns when it is complete. */
    template <class Act> void complete(const char *name, Act act);

private:
    /* Runs `act(limit)` now, or has the worker run it, and returns its handle. The profiler shows
       the shapes of `inputs`. */
    template <class Given, class Act>
    WorkPtr submit(c10d::OpType type, const char *name, const Tensors &inputs, Tensors outputs,
                   const Given &options, Act act);
    template <class Act> bool runs_now(Limit limit, const Act &act);
    WorkPtr enqueue(c10d::OpType type, Tensors outputs, Limit limit,
                    std::function<void()> end_event, std::function<void(Limit)> act);
    Milliseconds chosen(Milliseconds timeout) const;

    /* One call of the core. Throws c10::DistBackendError where it fails. `input` is copied where
       the core needs a copy. */
    void run(hbm_call &call, const at::Tensor &input, Limit limit);
    [[noreturn]] void fail(int status, Limit limit, bool late);
    void leave();
    void open_hosts();
    int inside_rank(int index) const;
    hbm_call call_of(hbm_operation_code operation, const at::Tensor &tensor) const;
    void gather_blocks(hbm_call call, const Tensors &outputs, const at::Tensor &input, Limit limit);
    hbm_call swap_call(const at::Tensor &example, const Blocks &from, const Blocks &to) const;
    void check(const char *name, const Tensors &tensors) const;
    void check_blocks(const char *name, const Tensors &tensors, const at::Tensor &own) const;

    const c10::intrusive_ptr<Options> options_;
    Opening opening_;
    hbm_comm *const inside_; /* of this host's ranks */
    hbm_comm *comm_;         /* of all ranks */
    std::unique_ptr<GlooWire> wire_; /* null: one host */
    int64_t number_ = -1;
    std::once_flag left_, released_;
    std::atomic<bool> closing_{false};
    std::atomic<uint64_t> sequence_{0};
    Queue queue_;
};

/* While one exists, torch's operators write tensors as the core does, without a record for autograd:
   tensors of an inference mode too, which the worker is not in. */
using WritesData = at::AutoDispatchBelowADInplaceOrView;

template <class Act> bool Group::runs_now(Limit limit, const Act &act)
{
    if (!queue_.enter())
        return false;
    struct Leave {
        Queue &queue;
        ~Leave() { queue.leave(); }
    } leave{queue_};
    WritesData writes;
    act(limit);
    return true;
}

template <class Given, class Act>
WorkPtr Group::submit(c10d::OpType type, const char *name, const Tensors &inputs, Tensors outputs,
                      const Given &options, Act act)
{
    const Limit limit{name, chosen(options.timeout)};
    auto end_event = begin_event(name, inputs);
    sequence_.fetch_add(1, std::memory_order_relaxed);
    if (!options.asyncOp && runs_now(limit, act)) {
        if (end_event)
            end_event();
        return c10::make_intrusive<Done>(type, std::move(outputs));
    }
    auto work = enqueue(type, std::move(outputs), limit, std::move(end_event), std::move(act));
    if (!options.asyncOp)
        work->wait();
    return work;
}

template <class Act> void Group::complete(const char *name, Act act)
{
    const Limit limit{name, chosen(c10d::kUnsetTimeout)};
    sequence_.fetch_add(1, std::memory_order_relaxed);
    if (!runs_now(limit, act))
        enqueue(c10d::OpType::UNKNOWN, {}, limit, {}, std::move(act))->wait();
}

} // namespace hbmcomm
