/* Tensors in this rank's part of an arena. */
#pragma once

#include <ATen/core/Tensor.h>

#include "core.h"

namespace hbmcomm {

/* A new tensor of arbitrary contents. It can be resized, and stays in the arena then; it may outlive
   its group, and Python.

   base: the address of the heap's memory, which stays mapped as long as the process.

   Throws c10::OutOfMemoryError where the heap has no room. */
at::Tensor arena_tensor(hbm_heap *heap, uintptr_t base, int64_t size, caffe2::TypeMeta dtype);

} // namespace hbmcomm
