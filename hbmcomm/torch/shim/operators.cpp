/* The bare operators torch.ops.hbmcomm.*: collectives on contiguous tensors without torch's process
   groups in between, for programs that call them thousands of times a second. They name a group by its
   number, because numbers are the arguments that torch's dispatcher passes fastest. */
#include "operators.h"

#include <map>
#include <torch/library.h>

namespace hbmcomm {

static c10d::ReduceOp op_of(Name name)
{
    using Op = c10d::ReduceOp;
    static const std::pair<const char *, Op::RedOpType> names[]
        = {{"sum", Op::SUM}, {"avg", Op::AVG}, {"min", Op::MIN}, {"max", Op::MAX},
           {"product", Op::PRODUCT}, {"band", Op::BAND}, {"bor", Op::BOR}, {"bxor", Op::BXOR}};
    for (const auto &[known, op] : names)
        if (name == known)
            return op;
    TORCH_CHECK_VALUE(false, "hbm: no reduction is called ", name,
                      "; take sum, avg, min, max, product, band, bor or bxor");
}

static void check(const char *name, const at::Tensor &tensor)
{
    TORCH_CHECK_VALUE(tensor.is_cpu() && tensor.is_contiguous(), "hbm: ", name,
                      " takes contiguous tensors in the CPU's memory; call .contiguous() before");
}

static void check_lengths(const char *name, const at::Tensor &all, const at::Tensor &one, int ranks)
{
    check(name, all);
    check(name, one);
    TORCH_CHECK_VALUE(all.scalar_type() == one.scalar_type() && all.numel() == one.numel() * ranks,
                      "hbm: ", name, ": ", all.numel(), " elements of ", all.scalar_type(), " are not ",
                      ranks, " times ", one.numel(), " of ", one.scalar_type());
}

static void all_reduce_(const at::Tensor &tensor, Name op, int64_t handle)
{
    check("all_reduce_", tensor);
    const auto group = find_group(handle);
    group->complete("all_reduce_", [&, reduction = op_of(op)](Group::Limit limit) {
        group->run_allreduce(tensor, reduction, limit);
    });
}

static void broadcast_(const at::Tensor &tensor, int64_t root, int64_t handle)
{
    check("broadcast_", tensor);
    const auto group = find_group(handle);
    group->check_root("broadcast_", root);
    group->complete("broadcast_", [&](Group::Limit limit) {
        group->run_broadcast(tensor, root, limit);
    });
}

static void all_gather_into_(const at::Tensor &output, const at::Tensor &input, int64_t handle)
{
    const auto group = find_group(handle);
    check_lengths("all_gather_into_", output, input, group->getSize());
    group->complete("all_gather_into_", [&](Group::Limit limit) {
        group->run_allgather(output, input, limit);
    });
}

static void reduce_scatter_into_(const at::Tensor &output, const at::Tensor &input, Name op,
                                 int64_t handle)
{
    const auto group = find_group(handle);
    check_lengths("reduce_scatter_into_", input, output, group->getSize());
    group->complete("reduce_scatter_into_", [&, reduction = op_of(op)](Group::Limit limit) {
        group->run_reduce_scatter(output, input, reduction, limit);
    });
}

static void all_to_all_into_(const at::Tensor &output, const at::Tensor &input, int64_t handle)
{
    const auto group = find_group(handle);
    check("all_to_all_into_", output);
    check("all_to_all_into_", input);
    TORCH_CHECK_VALUE(output.scalar_type() == input.scalar_type()
                          && output.numel() == input.numel()
                          && input.numel() % group->getSize() == 0,
                      "hbm: all_to_all_into_: ", output.numel(), " elements of ",
                      output.scalar_type(), " cannot take ", group->getSize(),
                      " equal blocks of ", input.numel(), " of ", input.scalar_type(),
                      "; give tensors of one type and length, a multiple of the ranks");
    group->complete("all_to_all_into_", [&](Group::Limit limit) {
        group->run_alltoall(output.view(-1), input.view(-1), {}, {}, limit);
    });
}

} // namespace hbmcomm

/* They return nothing and change what is marked (a!); so torch.compile keeps them in order. */
TORCH_LIBRARY(hbmcomm, library)
{
    library.def("all_reduce_(Tensor(a!) tensor, str op, int group) -> ()");
    library.def("broadcast_(Tensor(a!) tensor, int root, int group) -> ()");
    library.def("all_gather_into_(Tensor(a!) output, Tensor input, int group) -> ()");
    library.def("reduce_scatter_into_(Tensor(a!) output, Tensor input, str op, int group) -> ()");
    library.def("all_to_all_into_(Tensor(a!) output, Tensor input, int group) -> ()");
}

TORCH_LIBRARY_IMPL(hbmcomm, CPU, library)
{
    library.impl("all_reduce_", hbmcomm::all_reduce_);
    library.impl("broadcast_", hbmcomm::broadcast_);
    library.impl("all_gather_into_", hbmcomm::all_gather_into_);
    library.impl("reduce_scatter_into_", hbmcomm::reduce_scatter_into_);
    library.impl("all_to_all_into_", hbmcomm::all_to_all_into_);
}

/* For tensors without data, with which torch.compile traces a program: nothing is done. */
TORCH_LIBRARY_IMPL(hbmcomm, Meta, library)
{
    library.impl("all_reduce_", [](const at::Tensor &, hbmcomm::Name, int64_t) {});
    library.impl("broadcast_", [](const at::Tensor &, int64_t, int64_t) {});
    library.impl("all_gather_into_", [](const at::Tensor &, const at::Tensor &, int64_t) {});
    library.impl("reduce_scatter_into_",
                 [](const at::Tensor &, const at::Tensor &, hbmcomm::Name, int64_t) {});
    library.impl("all_to_all_into_", [](const at::Tensor &, const at::Tensor &, int64_t) {});
}

/* Ordering: the mutex guards the map; a thread's `last` and `last_group` are its own. Weak pointers
   keep nothing of a group but its own bytes: see Group::release_resources. */
namespace hbmcomm {

static std::mutex &mutex = *new std::mutex; /* groups may end after static objects */
static auto &groups = *new std::map<int64_t, c10::weak_intrusive_ptr<Group>>;

void add_group(const c10::intrusive_ptr<Group> &group)
{
    static int64_t next = 0;
    std::lock_guard<std::mutex> lock(mutex);
    group->set_number(next);
    groups.emplace(next++, group);
}

void remove_group(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    groups.erase(number);
}

/* A null pointer if there is no such group. */
static c10::weak_intrusive_ptr<Group> listed(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    const auto entry = groups.find(number);
    if (entry == groups.end())
        return c10::weak_intrusive_ptr<Group>(c10::intrusive_ptr<Group>());
    return entry->second;
}

c10::intrusive_ptr<Group> find_group(int64_t number)
{
    static thread_local int64_t last = -1;
    static thread_local c10::weak_intrusive_ptr<Group> last_group = listed(last);
    auto group = last_group.lock();
    if (!group || last != number) {
        last = number;
        last_group = listed(number);
        group = last_group.lock();
    }
    TORCH_CHECK_VALUE(group, "hbm: no process group has the handle ", number,
                      "; take hbmcomm.torch.handle(group) of one that exists");
    return group;
}

void abort_groups()
{
    std::unique_lock<std::mutex> lock(mutex);
    const auto all = groups;
    lock.unlock();
    for (const auto &[number, weak_group] : all)
        if (const auto group = weak_group.lock())
            group->abort();
}

} // namespace hbmcomm
