/* Counts forks by a handler that runs in the child alone (pthread_atfork), so that a check costs
   a load and no system call. Children that clone(2) makes behind libc's back are not counted. */
#include "fork.h"

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
