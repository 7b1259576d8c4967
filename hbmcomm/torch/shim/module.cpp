/* What hbmcomm.torch calls: torch.ops.hbmcomm_shim.*. Addresses are those of the C core, and of functions
   of Python, which are called with an interpreter's lock. */
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/library.h>

#include "allocator.h"
#include "interpreter.h"
#include "operators.h"
#include "quick_calls.h"

namespace {

using hbmcomm::Group;
using ProcessGroup = c10::intrusive_ptr<c10d::ProcessGroup>;

std::string explanation(const hbmcomm::Object &explain, int status)
{
    hbmcomm::WithPython lock;
    const auto text = hbmcomm::checked(PyObject_CallFunction(explain.get(), "i", status));
    return hbmcomm::text_of(text.get());
}

void call(const hbmcomm::Object &function)
{
    if (!Py_IsInitialized())
        return;
    hbmcomm::WithPython lock;
    hbmcomm::checked(PyObject_CallFunction(function.get(), nullptr));
}

/* Makes a group, and puts it into `holder`, from where Python takes it. Of c10d's groups torch's
   operators take those of this class alone; Backends travel in them. */
void make_group(const ProcessGroup &holder, const ProcessGroup &companion, int64_t rank, int64_t size,
                int64_t milliseconds, int64_t comm, int64_t arrays, int64_t base, int64_t bytes,
                int64_t explain, int64_t close, const std::vector<int64_t> &host_of,
                const std::vector<int64_t> &leading, int64_t leaders)
{
    hbmcomm::Opening opening{
        static_cast<uintptr_t>(comm),
        static_cast<uintptr_t>(arrays),
        static_cast<uintptr_t>(base),
        static_cast<uint64_t>(bytes),
        [explain = hbmcomm::lent(explain)](int status) { return explanation(explain, status); },
        [close = hbmcomm::lent(close)] { call(close); },
        companion->getBackend(c10::kCPU),
        {host_of.begin(), host_of.end()},
        {leading.begin(), leading.end()},
        static_cast<int32_t>(leaders),
    };
    auto group = c10::make_intrusive<Group>(static_cast<int>(rank), static_cast<int>(size),
                                            hbmcomm::Milliseconds(milliseconds), std::move(opening));
    hbmcomm::add_group(group);
    holder->setBackend(c10::kCPU, c10d::ProcessGroup::CUSTOM,
                       c10::static_intrusive_pointer_cast<c10d::Backend>(group));
}

int64_t handle_of(const ProcessGroup &holder)
{
    const auto backend = holder->getBackend(c10::kCPU);
    const auto *ours = dynamic_cast<Group *>(backend.get());
    TORCH_CHECK_VALUE(ours, "hbmcomm.torch serves groups of backend hbm; this one is of ",
                      backend->getBackendName(), ": create it with backend='hbm', and see its ",
                      "warnings: where ranks cannot share memory it is one of gloo");
    return ours->number();
}

void use_core(const c10::Dict<std::string, int64_t> &addresses)
{
    std::map<std::string, uintptr_t> known;
    for (const auto &entry : addresses)
        known[entry.key()] = static_cast<uintptr_t>(entry.value());
    hbmcomm::use_core(known);
    hbmcomm::watch_waits();
}

} // namespace

#define PROCESS_GROUP "__torch__.torch.classes.c10d.ProcessGroup"

TORCH_LIBRARY(hbmcomm_shim, library)
{
    library.def("use_core(Dict(str, int) addresses) -> ()", use_core);
    library.def("make_group(" PROCESS_GROUP " holder, " PROCESS_GROUP
                " companion, int rank, int size, int milliseconds, int comm, int arrays, int base, "
                "int bytes, int explain, int close, int[] host_of, int[] leading, int leaders) -> ()",
                make_group);
    library.def("handle_of(" PROCESS_GROUP " holder) -> int", handle_of);
    library.def("is_in_arena(int group, int address) -> bool", [](int64_t group, int64_t address) {
        return hbmcomm::find_group(group)->is_in_arena(static_cast<uintptr_t>(address));
    });
    library.def("quicken(int operators) -> ()", hbmcomm::quicken);
    library.def("use_kinds(int allocate) -> ()", hbmcomm::use_kinds);
    library.def("choose_kind(int number) -> int", hbmcomm::choose_kind);
    library.def("abort_groups() -> ()", hbmcomm::abort_groups);
}
