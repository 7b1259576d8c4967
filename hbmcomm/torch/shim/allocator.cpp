/* torch's allocator of the CPU's memory, with a kind of memory for a while. */
#include "allocator.h"

#include <mutex>
#include <unordered_map>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "interpreter.h"

namespace hbmcomm {

namespace {

thread_local int64_t chosen = 0; /* the number of a kind; 0: torch's own memory */

/* The blocks in use, Python's objects, by their addresses. The mutex guards the map. Both last as long
   as the process: tensors may be freed after static objects. */
std::mutex &blocks_mutex = *new std::mutex;
auto &kind_blocks = *new std::unordered_map<void *, Object>;
c10::DeleterFnPtr free_other = nullptr; /* for torch's own memory; null: it has no such function */

class KindAllocator : public c10::Allocator {
public:
    KindAllocator(c10::Allocator *others, Object allocate)
        : others_(others), allocate_(std::move(allocate))
    {
    }

    c10::DataPtr allocate(size_t bytes) override
    {
        return chosen && bytes >= KIND_FROM ? of_kind(bytes) : others_->allocate(bytes);
    }

    /* Frees both kinds of memory: a caller of raw_deallocate has the address alone. */
    c10::DeleterFnPtr raw_deleter() const override { return free_other ? &free_any : nullptr; }

    void copy_data(void *to, const void *from, std::size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }

private:
    c10::DataPtr of_kind(size_t bytes)
    {
        WithPython python;
        try {
            const Object block = checked(PyObject_CallFunction(
                allocate_.get(), "Ln", static_cast<long long>(chosen),
                static_cast<Py_ssize_t>(bytes)));
            const Object address = checked(PyObject_GetAttrString(block.get(), "address"));
            auto *data = PyLong_AsVoidPtr(address.get());
            {
                std::lock_guard<std::mutex> lock(blocks_mutex);
                kind_blocks[data] = block;
            }
            return {data, data, &free_any, c10::Device(c10::kCPU)}; // as raw_allocate requires
        } catch (const python_error &error) {
            const std::string text = text_of(error.value);
            TORCH_CHECK_WITH(OutOfMemoryError, false, text);
        }
    }

    static void free_any(void *data)
    {
        if (!taken(data))
            free_other(data);
    }

    /* Removes a block from those in use; null: the memory is torch's own. */
    static Object taken(void *data)
    {
        std::lock_guard<std::mutex> lock(blocks_mutex);
        const auto entry = kind_blocks.find(data);
        if (entry == kind_blocks.end())
            return nullptr;
        const Object block = std::move(entry->second);
        kind_blocks.erase(entry);
        return block;
    }

    c10::Allocator *const others_;
    const Object allocate_;
};

} // namespace

int64_t choose_kind(int64_t number) { return std::exchange(chosen, number); }

void use_kinds(int64_t allocate)
{
    c10::Allocator *before = c10::GetCPUAllocator();
    free_other = before->raw_deleter();
    c10::SetCPUAllocator(new KindAllocator(before, lent(allocate)), 1);
}

} // namespace hbmcomm
