/* Lets a thread make its tensors in a kind of memory. */
#pragma once

#include <cstddef>
#include <cstdint>

namespace hbmcomm {

/* Tensors of fewer bytes stay in torch's own memory. */
constexpr size_t KIND_FROM = 64 * 1024;

/* From now on tensors may be in a kind: the function of Python at this address,
   `allocate(number, bytes)`, returns a block of it, an object with an `address`, which is freed with
   the last reference. */
void use_kinds(int64_t allocate);

/* Sets the number of the kind of this thread's new tensors, and returns the one before; 0: none. */
int64_t choose_kind(int64_t number);

} // namespace hbmcomm
