/* Counts forks with a handler that runs in the child alone (pthread_atfork), so that a check costs
   a load and no system call. Children that clone(2) creates without libc are not counted. A child
   writes the count while it has one thread, so it needs no ordering. */
#include "memory/fork.h"

#include <pthread.h>

static unsigned forks; /* written by a child while it has one thread */

static void count_fork(void) { forks++; }

static void watch(void) { pthread_atfork(NULL, NULL, count_fork); }

unsigned hbm_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return forks;
}
