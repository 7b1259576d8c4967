/* Memory of torch's allocator without a tensor, as extensions in C++ take it. */
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

extern "C" {

void *allocate(size_t bytes)
{
    try {
        return c10::GetCPUAllocator()->raw_allocate(bytes);
    } catch (const std::exception &) {
        return nullptr;
    }
}

void deallocate(void *memory) { c10::GetCPUAllocator()->raw_deallocate(memory); }
}
