/* torch's allocator of the CPU's memory, with a kind of memory for a while. */
#include "tensors/allocator.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

namespace py = pybind11;

namespace hbmcomm {

namespace {

thread_local int64_t chosen = 0; /* the number of a kind; 0: torch's own memory */

class KindAllocator : public c10::Allocator {
public:
    KindAllocator(c10::Allocator *others, py::function allocate)
        : others_(others), allocate_(new py::function(std::move(allocate)))
    {
    }

    c10::DataPtr allocate(size_t bytes) override
    {
        return chosen && bytes >= KIND_FROM ? of_kind(bytes) : others_->allocate(bytes);
    }

    c10::DeleterFnPtr raw_deleter() const override { return others_->raw_deleter(); }

    void copy_data(void *to, const void *from, std::size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }

private:
    c10::DataPtr of_kind(size_t bytes)
    {
        py::gil_scoped_acquire acquire;
        try {
            auto block = (*allocate_)(chosen, bytes);
            auto *data = reinterpret_cast<void *>(block.attr("address").cast<uintptr_t>());
            return {data, block.release().ptr(), &release, c10::Device(c10::kCPU)};
        } catch (const py::error_already_set &error) {
            const std::string text = error.what();
            TORCH_CHECK_WITH(OutOfMemoryError, false, text);
        }
    }

    static void release(void *block)
    {
        if (!Py_IsInitialized())
            return;
        py::gil_scoped_acquire acquire;
        Py_DECREF(static_cast<PyObject *>(block));
    }

    c10::Allocator *const others_;
    py::function *const allocate_; /* as long as the process: Python may end before it */
};

} // namespace

int64_t choose_kind(int64_t number) { return std::exchange(chosen, number); }

void use_kinds(py::function allocate)
{
    c10::Allocator *before = c10::GetCPUAllocator();
    c10::SetCPUAllocator(new KindAllocator(before, std::move(allocate)), 1);
}

} // namespace hbmcomm
