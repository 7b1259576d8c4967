/* Ordering: the queue runs one operation of a group at a time, as the core requires. */
#include "group.h"

#include <algorithm>

#include "operators.h"
#include "arena.h"
#include "interpreter.h"

namespace hbmcomm {

Group::Group(int rank, int size, Milliseconds timeout, Opening opening)
    : Backend(rank, size), options_(c10::make_intrusive<Options>("hbm", timeout)),
      opening_(std::move(opening)), inside_(reinterpret_cast<hbm_comm *>(opening_.comm)),
      comm_(inside_)
{
    const auto &of = opening_.host_of;
    if (std::any_of(of.begin(), of.end(), [&](int32_t host) { return host != of[0]; }))
        open_hosts();
}

/* The core's communicator of all ranks, with gloo between hosts. */
void Group::open_hosts()
{
    const auto &of = opening_.host_of;
    wire_ = std::make_unique<GlooWire>(opening_.companion);
    hbm_hosts_setup setup{};
    setup.rank = rank_;
    setup.ranks = size_;
    setup.hosts = *std::max_element(of.begin(), of.end()) + 1;
    setup.leaders = opening_.leaders;
    setup.news = -1;
    setup.host_of = of.data();
    setup.leading = opening_.leading.data();
    const hbm_wire table = wire_->table();
    comm_ = core.hbm_open_hosts(inside_, &setup, &table);
    TORCH_CHECK(comm_, "hbm: no memory for a process group");
}

/* The number in the group of a rank of this host. */
int Group::inside_rank(int index) const
{
    for (int rank = 0; rank < size_; rank++)
        if (opening_.host_of[rank] == opening_.host_of[rank_] && index-- == 0)
            return rank;
    return rank_;
}

Group::~Group() { release_resources(); }

/* Without shutdown() before, other ranks may never come: nothing is waited for. */
void Group::release_resources()
{
    std::call_once(released_, [this] {
        WithoutPython released;
        remove_group(number_);
        abort();
        shutdown();
        if (wire_) {
            core.hbm_free(comm_);
            wire_.reset();
        }
        opening_ = {}; // the companion's sockets and threads, and what Python has lent
    });
}

void Group::abort()
{
    WithoutPython released;
    closing_.store(true, std::memory_order_relaxed);
    if (wire_)
        wire_->abort();
    queue_.close();
}

void Group::shutdown()
{
    WithoutPython released;
    queue_.close();
    leave();
}

void Group::leave()
{
    std::call_once(left_, [this] {
        if (wire_)
            core.hbm_close(comm_);
        opening_.close();
    });
}

/* A century at most: clocks count nanoseconds, of which 64 bits hold three centuries. */
Milliseconds Group::chosen(Milliseconds timeout) const
{
    static constexpr Milliseconds longest = std::chrono::hours(24 * 365 * 100);
    return std::min(timeout == c10d::kUnsetTimeout ? options_->timeout : timeout, longest);
}

WorkPtr Group::enqueue(c10d::OpType type, Tensors outputs, Limit limit,
                       std::function<void()> end_event, std::function<void(Limit)> act)
{
    auto work = c10::make_intrusive<Queued>(type, std::move(outputs), std::move(end_event),
                                            [act = std::move(act), limit] {
                                                WritesData writes;
                                                act(limit);
                                            },
                                            queue_);
    queue_.push([work] { work->run(); }, [work] { work->run_callbacks(); });
    return work;
}

hbm_call Group::call_of(hbm_operation_code operation, const at::Tensor &tensor) const
{
    const Entries entries = moved(tensor);
    hbm_call call{};
    call.operation = operation;
    call.dtype = entries.dtype;
    call.count = entries.count;
    return call;
}

void Group::run(hbm_call &call, const at::Tensor &input, Limit limit)
{
    Wait wait(limit.timeout, closing_);
    if (wire_)
        wire_->set_deadline(Clock::now() + limit.timeout);
    int status = core.hbm_run(comm_, &call);
    if (status == HBM_COPY_FIRST && input.defined()) {
        const at::Tensor copy = input.clone();
        call.send = address_of(copy);
        status = core.hbm_run(comm_, &call);
    }
    if (status)
        fail(status, limit, wait.is_late());
}

void Group::fail(int status, Limit limit, bool late)
{
    TORCH_CHECK_VALUE(status != HBM_COPY_FIRST, "hbm: ", limit.name,
                      ": tensors overlap, or begin at no multiple of their element's size; clone "
                      "the input, or take tensors that torch has allocated");
    TORCH_CHECK_VALUE(status != HBM_UNSERVED, "hbm: ", limit.name,
                      ": the tensor is longer than the core moves in one call; divide it");
    if (status == HBM_WIRE_FAILED) {
        leave(); // the other ranks of this host must not wait for this one
        C10_THROW_ERROR(DistBackendError, c10::str("hbm: ", limit.name, ": ", wire_->failure(),
                                                   "; the group is unusable now"));
    }
    const int awaited = inside_rank(core.hbm_awaited(inside_));
    const std::string why = opening_.explain(status);
    if (late)
        C10_THROW_ERROR(DistBackendError,
                        c10::str("hbm: ", limit.name, " took longer than its timeout of ",
                                 limit.timeout.count(), " ms on rank ", rank_,
                                 ", which waits for rank ", awaited,
                                 "; see what that rank does, or set a longer timeout"));
    C10_THROW_ERROR(DistBackendError, c10::str("hbm: ", limit.name, ": ", why));
}

void Group::check(const char *name, const Tensors &tensors) const
{
    for (const auto &tensor : tensors) {
        TORCH_CHECK_VALUE(tensor.device().is_cpu(), "hbm: ", name,
                          " takes tensors in the CPU's memory, not on ", tensor.device(),
                          R"(; give others a backend: init_process_group("cpu:hbm,cuda:nccl"))");
        TORCH_CHECK_VALUE(tensor.layout() == at::kStrided, "hbm: ", name,
                          " takes dense tensors, not of layout ", tensor.layout());
        TORCH_CHECK_VALUE(tensor.scalar_type() == tensors[0].scalar_type(), "hbm: ", name,
                          " takes tensors of one type, found ", tensors[0].scalar_type(), " and ",
                          tensor.scalar_type());
    }
}

void Group::check_root(const char *name, int64_t root) const
{
    TORCH_CHECK_VALUE(root >= 0 && root < size_, "hbm: ", name, ": no rank ", root,
                      " in a group of ", size_, " ranks");
}

void Group::check_blocks(const char *name, const Tensors &tensors, const at::Tensor &own) const
{
    TORCH_CHECK_VALUE(static_cast<int>(tensors.size()) == size_, "hbm: ", name,
                      " takes one tensor for each of ", size_, " ranks, found ", tensors.size());
    check(name, tensors);
    check(name, {tensors[0], own});
}

at::Tensor Group::allocateTensor(long size, at::TensorOptions options)
{
    return arena_tensor(reinterpret_cast<hbm_heap *>(opening_.arrays), opening_.base, size,
                        options.dtype());
}

bool Group::is_in_arena(uintptr_t address) const
{
    return address - opening_.base < opening_.bytes;
}

WorkPtr Group::barrier(const c10d::BarrierOptions &options)
{
    return submit(c10d::OpType::BARRIER, "barrier", {}, {}, options, [this](Limit limit) {
        hbm_call call{};
        call.operation = HBM_BARRIER;
        run(call, {}, limit);
    });
}

/* ---- what the companion does ---- */

/* Messages are in the profiler under this backend's name too, as the caller expects; the event of
   the companion, under "gloo", shows their time. */
template <class Act> static WorkPtr shown(const char *name, const Tensors &tensors, Act act)
{
    auto end_event = begin_event(name, tensors);
    auto work = act();
    if (end_event)
        end_event();
    return work;
}

void Group::monitoredBarrier(const c10d::BarrierOptions &options, bool all)
{
    opening_.companion->monitoredBarrier(options, all);
}

WorkPtr Group::send(Tensors &tensors, int rank, int tag)
{
    return shown("send", tensors,
                 [&] { return opening_.companion->send(tensors, rank, tag); });
}

WorkPtr Group::recv(Tensors &tensors, int rank, int tag)
{
    return shown("recv", tensors,
                 [&] { return opening_.companion->recv(tensors, rank, tag); });
}

WorkPtr Group::recvAnysource(Tensors &tensors, int tag)
{
    return shown("recvAnySource", tensors,
                 [&] { return opening_.companion->recvAnysource(tensors, tag); });
}

WorkPtr Group::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    return opening_.companion->allreduce(tensors, options);
}

} // namespace hbmcomm
