/* A heap over a file in memory, with steps of one page, so that the system's use of memory
   shows. */
#ifndef HBMCOMM_HEAP_PLACE_H
#define HBMCOMM_HEAP_PLACE_H

#define _GNU_SOURCE
#include "core_test.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEPS 40u

typedef struct {
    hbm_heap *heap;
    unsigned char *memory;
    int file;
} place;

static inline place new_place(uint64_t bytes, uint64_t step)
{
    place p = {.file = memfd_create("heap", MFD_CLOEXEC)};
    CHECK(p.file >= 0 && !ftruncate(p.file, (off_t)bytes), "no memory");
    p.memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, p.file, 0);
    CHECK(p.memory != MAP_FAILED, "no mapping");
    p.heap = hbm_heap_new((uintptr_t)p.memory, bytes, step);
    CHECK(p.heap, "no heap");
    return p;
}

static inline void end_place(place p, uint64_t bytes)
{
    hbm_heap_delete(p.heap);
    munmap(p.memory, bytes);
    close(p.file);
}

static inline uint64_t bytes_held(place p)
{
    struct stat state;
    CHECK(!fstat(p.file, &state), "no state");
    return (uint64_t)state.st_blocks * 512;
}

#endif
