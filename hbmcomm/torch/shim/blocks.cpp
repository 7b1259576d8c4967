#include "blocks.h"

#include <algorithm>

namespace hbmcomm {

Output::Output(const at::Tensor &tensor, bool read) : tensor_(tensor), dense_(tensor)
{
    if (!tensor.is_contiguous())
        dense_ = read ? tensor.contiguous()
                      : at::empty_like(tensor, at::MemoryFormat::Contiguous);
}

void Output::finish()
{
    if (!dense_.is_same(tensor_))
        tensor_.copy_(dense_);
}

/* The address takes the place of the offset until settle() knows the lowest one. */
void Blocks::add(const at::Tensor &tensor) { parts_.push_back({address_of(tensor), tensor.nbytes()}); }

void Blocks::settle()
{
    address_ = UINTPTR_MAX;
    for (const auto &part : parts_)
        if (part.bytes)
            address_ = std::min<uintptr_t>(address_, part.offset);
    for (auto &part : parts_)
        part.offset = part.bytes ? part.offset - address_ : 0;
    if (address_ == UINTPTR_MAX)
        address_ = 0;
}

Blocks Blocks::read(const std::vector<at::Tensor> &tensors)
{
    Blocks blocks;
    for (const auto &tensor : tensors) {
        blocks.inputs_.push_back(tensor.contiguous());
        blocks.add(blocks.inputs_.back());
    }
    blocks.settle();
    return blocks;
}

Blocks Blocks::written(const std::vector<at::Tensor> &tensors)
{
    Blocks blocks;
    for (const auto &tensor : tensors) {
        blocks.outputs_.emplace_back(tensor);
        blocks.add(blocks.outputs_.back().dense());
    }
    blocks.settle();
    return blocks;
}

Blocks Blocks::rows(const at::Tensor &tensor, const std::vector<int64_t> &counts, size_t ranks)
{
    Blocks blocks;
    const uint64_t rows = tensor.dim() ? tensor.size(0) : 0;
    const uint64_t bytes = rows ? tensor.nbytes() / rows : 0;
    uint64_t offset = 0;
    for (size_t rank = 0; rank < ranks; rank++) {
        const uint64_t own = bytes * (counts.empty() ? rows / ranks : counts[rank]);
        blocks.parts_.push_back({offset, own});
        offset += own;
    }
    blocks.address_ = address_of(tensor);
    return blocks;
}

void Blocks::finish()
{
    for (auto &output : outputs_)
        output.finish();
}

} // namespace hbmcomm
