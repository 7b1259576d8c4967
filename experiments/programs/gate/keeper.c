/* keeper SOCKET LIBRARY FOLDER [NAME=VALUE ...] -- PROGRAM [ARGUMENT ...]: becomes a program once the
 * driver says so, with these variables beside its own.
 *
 * Linked statically, so it runs in any image of its architecture. It tells the driver what this
 * environment allows, waits, and executes the program with the library preloaded: so the driver
 * knows the process, the time at which it begins, and why it cannot begin. LIBRARY may be "", for a
 * program without ranks to hold; FOLDER is where it works, "" where it is there.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum { USAGE = 2, NOT_BEGUN = 127, TEXT = 1024 };

static int connected(const char *path) {
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof place.sun_path) return -1;
    strcpy(place.sun_path, path);
    int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (end >= 0 && connect(end, (struct sockaddr *)&place, sizeof place)) return -1;
    return end;
}

/* Whether one child may read another's memory, as ranks do for a single copy: 0 or an errno. */
static int reading(void) {
    int *answer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (answer == MAP_FAILED) return errno;
    *answer = EIO;
    pid_t other = fork();
    if (!other) {
        pause();
        _exit(0);
    }
    pid_t reader = other < 0 ? -1 : fork();
    if (!reader) {
        static char there[16], here[16];
        struct iovec from = {there, sizeof there}, to = {here, sizeof here};
        long got = syscall(SYS_process_vm_readv, (long)other, &to, 1ul, &from, 1ul, 0ul);
        *answer = got == sizeof here ? 0 : errno;
        _exit(0);
    }
    if (reader > 0) waitpid(reader, NULL, 0);
    if (other > 0) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
    return *answer;
}

/* Whether a process may choose where its memory is: 0 or an errno. */
static int placing(void) { return syscall(SYS_set_mempolicy, 0l, NULL, 0ul) ? errno : 0; }

static int cpus(void) {
    cpu_set_t allowed;
    return sched_getaffinity(0, sizeof allowed, &allowed) ? 0 : CPU_COUNT(&allowed);
}

static void describe(char *text) {
    struct statvfs shm;
    unsigned long long bytes = 0;
    if (!statvfs("/dev/shm", &shm)) bytes = (unsigned long long)shm.f_blocks * shm.f_frsize;
    struct rlimit locked = {0, 0};
    getrlimit(RLIMIT_MEMLOCK, &locked);
    snprintf(text, TEXT, "ready reading=%d placing=%d cpus=%d shm=%llu memlock=%lld", reading(),
             placing(), cpus(), bytes, (long long)locked.rlim_cur);
}

static void tell(int driver, const char *text) {
    if (send(driver, text, strlen(text), MSG_NOSIGNAL) < 0) exit(NOT_BEGUN);
}

static void preload(const char *library) {
    const char *given = getenv("LD_PRELOAD");
    char *all = NULL;
    if (asprintf(&all, "%s%s%s", library, given ? ":" : "", given ? given : "") > 0)
        setenv("LD_PRELOAD", all, 1);
}

/* Become a program, looked for in PATH; returns with errno. Unlike execvp(3) it gives no file to a
 * shell that the kernel cannot execute, as one of another architecture. */
static void become(char **words) {
    const char *path = getenv("PATH");
    char file[4096];
    int reason = ENOENT;
    if (strchr(words[0], '/')) {
        execv(words[0], words);
        return;
    }
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; at;) {
        const char *end = strchrnul(at, ':');
        const int length = (int)(end - at);
        snprintf(file, sizeof file, "%.*s%s%s", length, at, length ? "/" : "./", words[0]);
        execv(file, words);
        if (errno != ENOENT && errno != ENOTDIR) reason = errno;
        if (reason == ENOEXEC) break;
        at = *end ? end + 1 : NULL;
    }
    errno = reason;
}

int main(int count, char **words) {
    int at = count > 4 ? 4 : count; /* of what follows the folder */
    while (at < count && strcmp(words[at], "--") && !putenv(words[at])) at++;
    if (at + 1 >= count) {
        fprintf(stderr, "usage: keeper SOCKET LIBRARY FOLDER [NAME=VALUE ...] -- PROGRAM "
                        "[ARGUMENT ...]\n");
        return USAGE;
    }
    int driver = connected(words[1]);
    if (driver < 0) {
        fprintf(stderr, "keeper: no driver answers at %s: %s\n", words[1], strerror(errno));
        return NOT_BEGUN;
    }
    char text[TEXT], answer;
    describe(text);
    tell(driver, text);
    if (recv(driver, &answer, 1, 0) != 1) return NOT_BEGUN;
    if (*words[2]) {
        char usual[16];
        snprintf(usual, sizeof usual, "%d", cpus());
        setenv("HBMCOMM_GATE", words[1], 1);
        setenv("HBMCOMM_GATE_CPUS", usual, 1);
        preload(words[2]);
    }
    if (!*words[3] || !chdir(words[3])) become(words + at + 1);
    snprintf(text, sizeof text, "failed %d", errno);
    tell(driver, text);
    return NOT_BEGUN;
}
