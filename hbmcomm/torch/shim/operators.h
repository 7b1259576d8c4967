/* The bare operators torch.ops.hbmcomm.*: their names, and what they take. */
#pragma once

#include "group.h"

#include <ATen/core/Tensor.h>
#include <c10/util/string_view.h>

namespace hbmcomm {

using Name = c10::string_view;

struct AllReduce {
    static constexpr const char *name = "hbmcomm::all_reduce_";
    using Type = void(const at::Tensor &, Name op, int64_t group);
};

struct Broadcast {
    static constexpr const char *name = "hbmcomm::broadcast_";
    using Type = void(const at::Tensor &, int64_t root, int64_t group);
};

struct AllGather {
    static constexpr const char *name = "hbmcomm::all_gather_into_";
    using Type = void(const at::Tensor &output, const at::Tensor &input, int64_t group);
};

struct ReduceScatter {
    static constexpr const char *name = "hbmcomm::reduce_scatter_into_";
    using Type = void(const at::Tensor &output, const at::Tensor &input, Name op, int64_t group);
};

struct AllToAll {
    static constexpr const char *name = "hbmcomm::all_to_all_into_";
    using Type = void(const at::Tensor &output, const at::Tensor &input, int64_t group);
};

} // namespace hbmcomm

/* The groups of this process by number. */
namespace hbmcomm {

/* Gives a group its number. Numbers are not reused. */
void add_group(const c10::intrusive_ptr<Group> &group);

/* A group that ends removes itself. */
void remove_group(int64_t number);

/* Throws where the group does not exist any more. */
c10::intrusive_ptr<Group> find_group(int64_t number);

/* Ends all operations: Python, which explains errors, is about to end. */
void abort_groups();

} // namespace hbmcomm
