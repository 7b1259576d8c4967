/* The functions of the C core, by address.

   This module does not link the core: its state belongs to the process, and the library has loaded
   it already. Python passes the address of each function once. */
#pragma once

#include <cstdint>
#include <map>
#include <string>

extern "C" {
#include "interface.h"
int hbm_interrupted(void); /* the library's own check for signals, in Python */
}

namespace hbmcomm {

#define HBM_FUNCTIONS(X)                                                                           \
    X(hbm_run)                                                                                     \
    X(hbm_awaited)                                                                                 \
    X(hbm_dtype_size)                                                                              \
    X(hbm_reduces)                                                                                 \
    X(hbm_heap_allocate)                                                                           \
    X(hbm_heap_free)                                                                               \
    X(hbm_on_wait)                                                                                 \
    X(hbm_interrupted)

struct Core {
#define DECLARE(name) decltype(&::name) name = nullptr;
    HBM_FUNCTIONS(DECLARE)
#undef DECLARE
};

extern Core core;

/* Sets `core`. Throws where an address is missing. */
void use_core(const std::map<std::string, uintptr_t> &addresses);

} // namespace hbmcomm
