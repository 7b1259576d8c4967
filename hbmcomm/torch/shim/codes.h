/* The core's codes for torch's types of elements and reductions. */
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include "core.h"

namespace hbmcomm {

/* How the core reads memory: `count` entries of a type. */
struct Entries {
    uint8_t dtype;
    uint64_t count;
};

/* A tensor that is moved only: types that the core lacks are moved as bytes. */
Entries moved(const at::Tensor &tensor);

/* The code of a type for which reduction_code() has found a reduction. */
uint8_t reduced_dtype(at::ScalarType type);

/* AVG and PREMUL_SUM are sums; the caller scales them. On bool, sums and products are those of
   logic. Throws for anything else that the core lacks. */
uint8_t reduction_code(const c10d::ReduceOp &op, at::ScalarType type);

/* The reduction's name, for errors. */
const char *name_of(const c10d::ReduceOp &op);

} // namespace hbmcomm
