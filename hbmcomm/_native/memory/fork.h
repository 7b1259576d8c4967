/* Threads of the library, and detection of forks: some functions must refuse to work in a child. */
#ifndef HBMCOMM_FORK_H
#define HBMCOMM_FORK_H

#include <pthread.h>

/* As pthread_create. Signals are for the program's own threads, but not those of the thread's own
   faults: the program may handle faults of its memory. */
int hbm_start_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                     void *argument);

/* The number of forks between the process that made the first call and this one. It differs between
   a parent and its child. */
unsigned hbm_forks(void);

#endif
