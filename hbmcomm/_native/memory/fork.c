/* Starts threads. Counts forks with a handler that runs in the child alone (pthread_atfork), so that
   a check costs a load and no system call. Children that clone(2) creates without libc are not
   counted. A child writes the count while it has one thread, so it needs no ordering. */
#include "memory/fork.h"

#include <signal.h>

int hbm_start_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                     void *argument)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others, before;
    sigfillset(&others);
    for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&others, own[i]); /* a fault whose signal is blocked ends the process */
    pthread_sigmask(SIG_SETMASK, &others, &before);
    int problem = pthread_create(thread, attributes, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static unsigned forks; /* written by a child while it has one thread */

static void count_fork(void) { forks++; }

static void watch(void) { pthread_atfork(NULL, NULL, count_fork); }

unsigned hbm_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
    return forks;
}
