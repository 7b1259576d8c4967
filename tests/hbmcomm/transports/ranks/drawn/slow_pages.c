/* Memory of which the first access takes a while, as a page fault from swap does; and pauses of the
   calling thread at a moment that nothing in the program chooses, as by a busy CPU.

   The handlers call only functions that are safe in handlers. A slot of the table is written before
   its memory is protected, and by one thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SLOTS 64

static struct {
    volatile uintptr_t begin, end;
    volatile long ns;
} slots[SLOTS];
static struct sigaction before;
static volatile long pause_ns;
static volatile int pauses_made, faults_made;

static void rest(long ns)
{
    int saved = errno;
    struct timespec left = {ns / 1000000000, ns % 1000000000};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
    errno = saved;
}

static void slow(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    for (int i = 0; i < SLOTS; i++) {
        if (at < slots[i].begin || at >= slots[i].end)
            continue;
        rest(slots[i].ns);
        mprotect((void *)slots[i].begin, slots[i].end - slots[i].begin, PROT_READ | PROT_WRITE);
        faults_made++;
        return;
    }
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else
        signal(number, SIG_DFL);
}

static void pause_now(int number)
{
    (void)number;
    pauses_made++;
    rest(pause_ns);
}

void slow_install(void)
{
    struct sigaction fault = {.sa_sigaction = slow, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &fault, &before);
    struct sigaction rest = {.sa_handler = pause_now, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN + 7, &rest, NULL);
}

/* 0, or -1 where all slots are in use. */
int slow_protect(uintptr_t begin, uintptr_t bytes, long ns)
{
    for (int i = 0; i < SLOTS; i++) {
        if (slots[i].end)
            continue;
        slots[i].ns = ns;
        slots[i].begin = begin;
        slots[i].end = begin + bytes;
        return mprotect((void *)begin, bytes, PROT_NONE);
    }
    return -1;
}

void slow_open(uintptr_t begin, uintptr_t bytes)
{
    mprotect((void *)begin, bytes, PROT_READ | PROT_WRITE);
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].begin >= begin && slots[i].end && slots[i].end <= begin + bytes)
            slots[i].end = slots[i].begin = 0;
}

void slow_read_only(uintptr_t begin, uintptr_t bytes) { mprotect((void *)begin, bytes, PROT_READ); }

/* Pauses the calling thread for `ns`, `after` nanoseconds from now. */
int slow_pause(long after, long ns)
{
    static timer_t timer;
    static int made;
    pause_ns = ns;
    if (!made) {
        struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGRTMIN + 7};
        event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
        if (timer_create(CLOCK_MONOTONIC, &event, &timer))
            return -1;
        made = 1;
    }
    struct itimerspec at = {.it_value = {after / 1000000000, after % 1000000000}};
    return timer_settime(timer, 0, &at, NULL);
}

int slow_faults(void) { return faults_made; }
int slow_pauses(void) { return pauses_made; }
