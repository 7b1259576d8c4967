/* NumPy's allocator hook (NEP 49) over a heap: arrays of 64 KiB and more are in shared memory.

   Smaller arrays come from libc, and so do those for which the heap has no memory. The address
   tells them apart, so that any thread may free an array, also after its context has ended. Each
   array holds a reference to the capsule of its handler. The capsule holds one to the memory's
   owner, a Python object, and its destructor releases that.

   In the child of a fork the heap refuses every call: new arrays come from libc, and freeing an
   array of the parent does nothing. The three functions of Python that this file needs are passed
   as addresses, so that it links without Python.

   Ordering: the heap's mutex. A handler does not change after it was made. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"

#define SHARED_FROM (64u * 1024u)
#define CAPSULE "mem_handler"

/* PyDataMem_Handler of numpy/ndarraytypes.h, version 1. */
typedef struct {
    char name[127];
    uint8_t version;
    struct {
        void *context;
        void *(*malloc)(void *context, size_t size);
        void *(*calloc)(void *context, size_t count, size_t size);
        void *(*realloc)(void *context, void *block, size_t size);
        void (*free)(void *context, void *block, size_t size);
    } allocator;
} numpy_handler;

typedef struct {
    numpy_handler handler;
    hbm_heap *heap;
    uintptr_t address;
    uint64_t bytes;
} shared_handler;

static struct {
    void *(*pointer)(void *capsule, const char *name);
    void *(*owner)(void *capsule);
    void (*release)(void *object);
} python;

static int is_shared(const shared_handler *h, const void *block)
{
    return (uintptr_t)block - h->address < h->bytes;
}

static uint64_t offset_of(const shared_handler *h, const void *block)
{
    return (uintptr_t)block - h->address;
}

/* A block of the heap, or NULL. */
static void *shared_block(const shared_handler *h, size_t size)
{
    if (size < SHARED_FROM)
        return NULL;
    int before = errno;
    uint64_t offset = hbm_heap_array(h->heap, size);
    errno = before;
    return offset == HBM_NOWHERE ? NULL : (void *)(h->address + offset);
}

static void *allocate(void *context, size_t size)
{
    void *block = shared_block(context, size);
    return block ? block : malloc(size ? size : 1);
}

static void *allocate_zeros(void *context, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    void *block = shared_block(context, bytes);
    return block ? memset(block, 0, bytes) : calloc(bytes ? bytes : 1, 1);
}

static void release(void *context, void *block, size_t size)
{
    const shared_handler *h = context;
    (void)size;
    if (is_shared(h, block))
        hbm_heap_free(h->heap, offset_of(h, block));
    else
        free(block);
}

static void *resize(void *context, void *block, size_t size)
{
    const shared_handler *h = context;
    if (!block)
        return allocate(context, size);
    int shared = is_shared(h, block);
    if (!shared && size < SHARED_FROM)
        return realloc(block, size ? size : 1);
    size_t had = shared ? hbm_heap_size(h->heap, offset_of(h, block)) : malloc_usable_size(block);
    if (!had) /* in the child of a fork that cannot lock the heap */
        return NULL;
    if (shared && size <= had && size >= had / 2 && size >= SHARED_FROM)
        return block;
    void *moved = allocate(context, size);
    if (moved) {
        memcpy(moved, block, size < had ? size : had);
        release(context, block, had);
    }
    return moved;
}

void hbm_handler_python(uintptr_t pointer, uintptr_t owner, uintptr_t release)
{
    memcpy(&python.pointer, &pointer, sizeof pointer);
    memcpy(&python.owner, &owner, sizeof owner);
    memcpy(&python.release, &release, sizeof release);
}

uintptr_t hbm_handler_new(hbm_heap *heap, uintptr_t address, uint64_t bytes)
{
    shared_handler *h = calloc(1, sizeof *h);
    if (!h)
        return 0;
    strcpy(h->handler.name, "hbmcomm arena");
    h->handler.version = 1;
    h->handler.allocator.context = h;
    h->handler.allocator.malloc = allocate;
    h->handler.allocator.calloc = allocate_zeros;
    h->handler.allocator.realloc = resize;
    h->handler.allocator.free = release;
    h->heap = heap;
    h->address = address;
    h->bytes = bytes;
    return (uintptr_t)&h->handler;
}

void hbm_handler_end(void *capsule)
{
    void *handler = python.pointer(capsule, CAPSULE), *owner = python.owner(capsule);
    free(handler);
    if (owner)
        python.release(owner);
}
