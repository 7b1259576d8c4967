/* Makes Python's calls of the bare operators cheap. */
#pragma once

#include <cstdint>

namespace hbmcomm {

/* Takes the place of torch's binding in each of the operators at this address, torch.ops.hbmcomm. That
   is a private attribute of torch: a torch without it keeps its own binding. */
void quicken(int64_t operators);

} // namespace hbmcomm
