/* Ordering: the mutex guards the map of allocators; heaps lock themselves. */
#include "arena.h"

#include <map>
#include <mutex>

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>

namespace hbmcomm {

namespace {

/* An array of a heap; torch keeps it with the array's address. */
struct Array {
    hbm_heap *heap;
    uint64_t offset;
};

void free_array(void *context)
{
    const std::unique_ptr<Array> array(static_cast<Array *>(context));
    core.hbm_heap_free(array->heap, array->offset);
}

/* What torch calls to resize a tensor too. */
class ArenaAllocator : public c10::Allocator {
public:
    ArenaAllocator(hbm_heap *heap, uintptr_t base) : heap_(heap), base_(base) {}

    c10::DataPtr allocate(size_t bytes) override
    {
        const uint64_t offset = core.hbm_heap_array(heap_, bytes);
        TORCH_CHECK_WITH(OutOfMemoryError, offset != HBM_NOWHERE, "hbm: the arena has no ", bytes,
                         " bytes left on this rank; free tensors, or ask for less");
        return {reinterpret_cast<void *>(base_ + offset), new Array{heap_, offset}, &free_array,
                c10::Device(c10::kCPU)};
    }

    void copy_data(void *to, const void *from, std::size_t bytes) const override
    {
        default_copy_data(to, from, bytes);
    }

private:
    hbm_heap *const heap_;
    const uintptr_t base_;
};

/* One for each heap, as long as the process: tensors point to it. */
ArenaAllocator *allocator_of(hbm_heap *heap, uintptr_t base)
{
    static std::mutex mutex;
    static std::map<std::pair<hbm_heap *, uintptr_t>, ArenaAllocator *> known;
    std::lock_guard<std::mutex> lock(mutex);
    auto &allocator = known[{heap, base}];
    if (!allocator)
        allocator = new ArenaAllocator(heap, base);
    return allocator;
}

} // namespace

at::Tensor arena_tensor(hbm_heap *heap, uintptr_t base, int64_t size, caffe2::TypeMeta dtype)
{
    return at::detail::empty_generic({size}, allocator_of(heap, base),
                                     c10::DispatchKeySet(c10::DispatchKey::CPU),
                                     c10::typeMetaToScalarType(dtype), std::nullopt);
}

} // namespace hbmcomm
