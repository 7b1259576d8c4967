/* Buffers of one rank, in the arena or not, that detect writes beside them. */
#ifndef HBMCOMM_BUFFERS_H
#define HBMCOMM_BUFFERS_H

#include "core_test.h"

#define GUARD 64

typedef struct {
    unsigned char *at;
    void *own; /* memory to free; NULL in the arena */
    uint64_t bytes;
} buffer;

buffer new_buffer(unsigned char *place, int shared, uint64_t bytes, uint64_t skew);
void end_buffer(buffer b);

#endif
