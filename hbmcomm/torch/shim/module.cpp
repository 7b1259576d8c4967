/* The shim as Python sees it. */
#include <pybind11/chrono.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/extension.h>

#include "operators.h"
#include "quick_calls.h"
#include "allocator.h"

namespace py = pybind11;
using hbmcomm::Group;

namespace {

/* A function of Python that C++ calls, and may drop, without the interpreter's lock. */
class Callback {
public:
    explicit Callback(py::function function)
        : function_(new py::function(std::move(function)), [](py::function *held) {
              if (!Py_IsInitialized())
                  return; // the interpreter has ended: it has freed what it held
              py::gil_scoped_acquire acquire;
              delete held;
          })
    {
    }

    void run() const
    {
        py::gil_scoped_acquire acquire;
        (*function_)();
    }

    std::string text(int status) const
    {
        py::gil_scoped_acquire acquire;
        return (*function_)(status).cast<std::string>();
    }

private:
    std::shared_ptr<py::function> function_;
};

c10::intrusive_ptr<c10d::Backend> make_group(int rank, int size, hbmcomm::Milliseconds timeout,
                                             uintptr_t comm, uintptr_t arrays, uintptr_t base,
                                             uint64_t bytes, py::function explain, py::function close,
                                             c10::intrusive_ptr<c10d::Backend> companion,
                                             std::vector<int32_t> host_of,
                                             std::vector<int32_t> leading, int32_t leaders)
{
    const Callback explains(std::move(explain)), closes(std::move(close));
    hbmcomm::Opening opening{
        comm,
        arrays,
        base,
        bytes,
        [explains](int status) { return explains.text(status); },
        [closes] {
            if (Py_IsInitialized())
                closes.run();
        },
        std::move(companion),
        std::move(host_of),
        std::move(leading),
        leaders,
    };
    auto group = c10::make_intrusive<Group>(rank, size, timeout, std::move(opening));
    hbmcomm::add_group(group);
    return group;
}

c10::intrusive_ptr<Group> ours(const c10::intrusive_ptr<c10d::Backend> &backend)
{
    TORCH_CHECK_VALUE(dynamic_cast<Group *>(backend.get()),
                      "hbmcomm.torch serves groups of backend hbm; this one is of ",
                      backend->getBackendName(), ": create it with backend='hbm', and see its ",
                      "warnings: where ranks cannot share memory it is one of gloo");
    return c10::static_intrusive_pointer_cast<Group>(backend);
}

} // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module)
{
    module.def("use_core", [](const std::map<std::string, uintptr_t> &addresses) {
        hbmcomm::use_core(addresses);
        hbmcomm::watch_waits();
    });
    module.def("make_group", &make_group, py::arg("rank"), py::arg("size"), py::arg("timeout"),
               py::arg("comm"), py::arg("arrays"), py::arg("base"), py::arg("bytes"),
               py::arg("explain"), py::arg("close"), py::arg("companion"), py::arg("host_of"),
               py::arg("leading"), py::arg("leaders"));
    module.def("quicken", &hbmcomm::quicken);
    module.def("use_kinds", &hbmcomm::use_kinds);
    module.def("choose_kind", &hbmcomm::choose_kind);
    module.def("abort_groups", &hbmcomm::abort_groups,
               py::call_guard<py::gil_scoped_release>());
    module.def("handle_of", [](const c10::intrusive_ptr<c10d::Backend> &backend) {
        return ours(backend)->number();
    });
    module.def("is_in_arena", [](const c10::intrusive_ptr<c10d::Backend> &backend,
                                 const at::Tensor &tensor) {
        return ours(backend)->is_in_arena(tensor);
    });
}
