/* Tensors as the core reads and writes them: contiguous memory, or one block for each rank. */
#pragma once

#include <vector>

#include <ATen/ATen.h>

#include "core.h"

namespace hbmcomm {

/* A tensor that the core writes. Where it has gaps, the core writes a copy, and finish() copies
   that back. `read`: the core reads it too. */
class Output {
public:
    Output(const at::Tensor &tensor, bool read = false);
    at::Tensor &dense() { return dense_; }
    void finish();

private:
    at::Tensor tensor_, dense_;
};

/* Blocks at arbitrary addresses: parts of memory that begins at the lowest of them. */
class Blocks {
public:
    static Blocks read(const std::vector<at::Tensor> &tensors);
    static Blocks written(const std::vector<at::Tensor> &tensors);

    /* Rows of one tensor, one block of `counts` rows for each rank; equal blocks if there are no
       counts. */
    static Blocks rows(const at::Tensor &tensor, const std::vector<int64_t> &counts, size_t ranks);

    uintptr_t address() const { return address_; }
    const hbm_part *parts() const { return parts_.data(); }
    void finish();

private:
    void add(const at::Tensor &tensor);
    void settle();

    std::vector<Output> outputs_;
    std::vector<at::Tensor> inputs_;
    std::vector<hbm_part> parts_;
    uintptr_t address_ = 0;
};

inline uintptr_t address_of(const at::Tensor &tensor)
{
    return reinterpret_cast<uintptr_t>(tensor.data_ptr());
}

} // namespace hbmcomm
