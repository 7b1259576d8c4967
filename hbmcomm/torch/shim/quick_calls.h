/* Makes Python's calls of the bare operators cheap. */
#pragma once

#include <torch/csrc/utils/pybind.h>

namespace hbmcomm {

/* Takes the place of torch's binding in each of `operators`, torch.ops.hbmcomm. That is a private
   attribute of torch: a torch without it keeps its own binding. */
void quicken(const pybind11::object &operators);

} // namespace hbmcomm
