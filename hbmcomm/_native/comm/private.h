/* Private memory of other ranks, by process_vm_readv and process_vm_writev. */
#ifndef HBMCOMM_PRIVATE_H
#define HBMCOMM_PRIVATE_H

#include "comm/comm.h"

/* Whether other processes can reach this rank's memory: the kernel refuses that for devices. Looks
   at the first byte and the last. */
int hbm_is_reachable(uintptr_t memory, uint64_t bytes);

/* Whether every rank may reach every other's; the same on all ranks, once all have tried. */
int hbm_reads_private(hbm_comm *c);

/* Copies from private memory of another rank. */
int hbm_read_private(hbm_operation *o, int rank, uint64_t from, void *to, uint64_t bytes);

/* Copies into it. Returns whether all is written: if not, the communicator has failed, or other
   processes may not write there (a program may have protected a page, for instance). */
int hbm_write_private(hbm_operation *o, int rank, uint64_t to, const void *from, uint64_t bytes);

#endif
