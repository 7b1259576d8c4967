/* A rank that is killed while it acquires a claim does not end the claim of another.

   The kernel identifies an owner by a thread's number, and two containers may use the same
   numbers. So here the word holds the number of the thread that tries to acquire it, but belongs
   to another. */
#include "core_test.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 10000 /* more system calls than a claim makes */

static void set_owner(uint32_t *place, uint32_t thread)
{
    place[0] = thread;
    place[1] = BOOT;
}

static pid_t new_contender(const uint32_t *place)
{
    pid_t child = fork();
    CHECK(child >= 0, "no process");
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _Exit(2);
        raise(SIGSTOP);
        _Exit(hbm_acquire_claim((uintptr_t)place, BOOT) == NULL && errno == EBUSY ? 0 : 1);
    }
    return child;
}

static void ends_with(int status, int code)
{
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code, "the contender ended with %x", status);
}

/* Kills a contender when its threads enter or leave a system call for the `stop`-th time; 0 if it
   was refused before. Each thread that it starts becomes the word's owner before it runs. */
static int killed_at(uint32_t *place, int stop)
{
    const int calls = SIGTRAP | 0x80, start = SIGTRAP | PTRACE_EVENT_CLONE << 8;
    int status, stops = 0;
    pid_t child = new_contender(place), any = child;
    CHECK(waitpid(child, &status, 0) == child, "no contender: %d", errno);
    CHECK(WIFSTOPPED(status), "it cannot be traced (ptrace): %x", status);
    CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL,
                 PTRACE_O_TRACECLONE | PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) == 0,
          "no options: %d", errno);
    set_owner(place, 0x3fffffff); /* some owner, so that a contender without threads is refused */
    do {
        unsigned long thread;
        ptrace(PTRACE_SYSCALL, any, NULL, NULL); /* it may have ended meanwhile */
        any = waitpid(-1, &status, __WALL);
        CHECK(any > 0, "no thread: %d", errno);
        if (WIFSTOPPED(status) && status >> 8 == start
            && ptrace(PTRACE_GETEVENTMSG, any, NULL, &thread) == 0)
            set_owner(place, (uint32_t)thread);
        stops += WIFSTOPPED(status) && status >> 8 == calls && any != child;
    } while (stops < stop && (any != child || WIFSTOPPED(status)));
    if (stops < stop) {
        ends_with(status, 0);
        return 0;
    }
    kill(child, SIGKILL);
    while (waitpid(-1, &status, __WALL) > 0)
        ;
    return 1;
}

void test_kills(UNUSED uint64_t seed, UNUSED double seconds)
{
    int stop = 1;
    uint32_t *place = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(place != MAP_FAILED, "no memory");
    for (; killed_at(place, stop); stop++) {
        CHECK(hbm_is_claimed((uintptr_t)place, BOOT),
              "killed at its stop %d, a contender ended another's claim", stop);
        CHECK(stop < MANY, "it does not end");
    }
    CHECK(stop > 4, "killed only %d times", stop - 1);
    munmap(place, 4096);
}
