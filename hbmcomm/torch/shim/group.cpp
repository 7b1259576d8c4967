/* Ordering: the queue runs one operation of a group at a time, as the core requires. */
#include "group.h"

#include "operators.h"
#include "arena.h"
#include "without_python.h"

namespace hbmcomm {

namespace {

std::unique_ptr<Hierarchy> hierarchy_of(const Opening &opening, int rank)
{
    if (opening.hosts.size() == 1)
        return {};
    return std::make_unique<Hierarchy>(reinterpret_cast<hbm_comm *>(opening.comm),
                                       Layout(opening.hosts, rank), opening.companion);
}

} // namespace

Group::Group(int rank, int size, Milliseconds timeout, Opening opening)
    : Backend(rank, size), options_(c10::make_intrusive<Options>("hbm", timeout)),
      opening_(std::move(opening)), comm_(reinterpret_cast<hbm_comm *>(opening_.comm)),
      hierarchy_(hierarchy_of(opening_, rank))
{
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
        hierarchy_.reset();
        opening_ = {}; // the companion's sockets and threads, and what Python has lent
    });
}

void Group::abort()
{
    WithoutPython released;
    closing_.store(true, std::memory_order_relaxed);
    if (hierarchy_)
        hierarchy_->abort();
    queue_.close();
}

void Group::shutdown()
{
    WithoutPython released;
    queue_.close();
    leave();
}

void Group::leave() { std::call_once(left_, opening_.close); }

Milliseconds Group::chosen(Milliseconds timeout) const
{
    return timeout == c10d::kUnsetTimeout ? options_->timeout : timeout;
}

WorkPtr Group::enqueue(c10d::OpType type, Tensors outputs, Limit limit,
                       std::function<void()> end_event, std::function<void(Limit)> act)
{
    auto work = c10::make_intrusive<Queued>(type, std::move(outputs), std::move(end_event),
                                            [act = std::move(act), limit] {
                                                at::NoGradGuard no_grad;
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
    const auto attempt = [&] {
        return hierarchy_ ? run_on_hosts(call, limit) : core.hbm_run(comm_, &call);
    };
    int status = attempt();
    if (status == HBM_COPY_FIRST && input.defined()) {
        const at::Tensor copy = input.clone();
        call.send = address_of(copy);
        status = attempt();
    }
    if (status)
        fail(status, limit, wait.is_late());
}

/* After a failure between hosts the other ranks of this host must not wait for this one. */
int Group::run_on_hosts(const hbm_call &call, Limit limit)
{
    try {
        return hierarchy_->run(call, Clock::now() + limit.timeout);
    } catch (const WireFailure &failure) {
        leave();
        C10_THROW_ERROR(DistBackendError,
                        c10::str("hbm: ", limit.name, ": ", failure.what(),
                                 "; the group is unusable now"));
    }
}

void Group::fail(int status, Limit limit, bool late)
{
    TORCH_CHECK_VALUE(status != HBM_COPY_FIRST, "hbm: ", limit.name,
                      ": tensors overlap, or begin at no multiple of their element's size; clone "
                      "the input, or take tensors that torch has allocated");
    TORCH_CHECK_VALUE(status != HBM_UNSERVED, "hbm: ", limit.name,
                      ": the tensor is longer than the core moves in one call; divide it");
    int awaited = core.hbm_awaited(comm_);
    if (hierarchy_)
        awaited = hierarchy_->rank_of(awaited);
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

bool Group::is_in_arena(const at::Tensor &tensor) const
{
    return address_of(tensor) - opening_.base < opening_.bytes;
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
