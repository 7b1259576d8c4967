#include "core.h"

#include <c10/util/Exception.h>

namespace hbmcomm {

Core core;

void use_core(const std::map<std::string, uintptr_t> &addresses)
{
    const auto at = [&](const char *name) {
        const auto found = addresses.find(name);
        TORCH_CHECK(found != addresses.end(), "hbmcomm.torch: the core has no function ", name);
        return found->second;
    };
#define SET(name) core.name = reinterpret_cast<decltype(core.name)>(at(#name));
    HBM_FUNCTIONS(SET)
#undef SET
}

} // namespace hbmcomm
