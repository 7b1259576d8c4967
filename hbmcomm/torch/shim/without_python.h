/* Waits of threads that may hold the interpreter's lock. */
#pragma once

#include <optional>

#include <torch/csrc/utils/pybind.h>

namespace hbmcomm {

/* While one exists, this thread has released the interpreter's lock, if it held it: what it waits for
   may need the lock to end. */
class WithoutPython {
public:
    WithoutPython()
    {
        if (Py_IsInitialized() && PyGILState_Check())
            release_.emplace();
    }

private:
    std::optional<pybind11::gil_scoped_release> release_;
};

} // namespace hbmcomm
