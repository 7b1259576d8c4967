/* A library that is preloaded into a user's MPI program, whichever MPI that has.
 *
 * It holds each rank between MPI_Init and the program's own work until the driver lets it go, tells
 * the driver when a rank enters MPI_Finalize, and counts calls of MPI between the two: how many, of
 * which size, for how long. A process that does not find the driver's socket (HBMCOMM_GATE) runs as
 * if the library were not there.
 *
 * One build serves each MPI and each C library of an architecture. All arguments of MPI's functions
 * are integers or addresses, so a word for each of them is passed on, whatever an MPI's handles
 * are. Nothing is linked: the C library's functions are the process's own, MPI's are looked up
 * where the program has them. An MPI's Fortran comes through its C functions, MPI_ or PMPI_, so
 * both are defined here. Names with _c are only defined for an MPI that has them (LARGE_COUNTS):
 * mpi4py calls whichever there are.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

/* What a rank counts, in memory that it shares with the driver; experiments/jobs/gate.py reads it.
 *
 * A counter has one band for each range of sizes; a call without a size is in the first one. The
 * driver writes `stopped` while the rank is stopped, and nothing else. The rank takes it from its
 * clock: a call does not last longer because its rank was stopped in it.
 */
enum { BANDS = 6, NAME_BYTES = 32 };

static const uint64_t band_ends[BANDS - 2] = {256, 4096, 65536, 1 << 20}; /* bytes, of bands 1 on */

struct band {
    uint64_t calls, nanoseconds;
};

struct counter {
    char name[NAME_BYTES]; /* of the call without "MPI_"; empty behind the last one */
    uint64_t bytes;        /* that this rank gave, in calls that have one count and one datatype */
    struct band bands[BANDS];
};

struct page {
    uint64_t stopped; /* nanoseconds for which the rank was stopped so far */
    struct counter counters[];
};

typedef uintptr_t word;
typedef long (*function)(word, word, word, word, word, word, word, word, word, word, word, word);

#define PARAMETERS                                                                                 \
    const word a1, const word a2, const word a3, const word a4, const word a5, const word a6,      \
        const word a7, const word a8, const word a9, const word a10, const word a11,               \
        const word a12
#define ARGUMENTS a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12
#define EXPORTED __attribute__((visibility("default")))

/* Where the program's MPI is. */

static const char *const sonames[] = {"libmpi.so.40", "libmpi.so.12", "libmpich.so.12",
                                      "libmpi_abi.so.1", "libmpi_abi.so.0", NULL};

static void *library; /* an MPI that was loaded for a part of the program only, as mpi4py does */

static function next_of(const char *name) {
    void *next = dlsym(RTLD_NEXT, name);
    for (int i = 0; !next && !library && sonames[i]; i++) {
        library = dlopen(sonames[i], RTLD_LAZY | RTLD_NOLOAD);
        if (library && !dlsym(library, "PMPI_Init")) library = NULL;
    }
    if (!next && library) next = dlsym(library, name);
    if (!next) {
        fprintf(stderr, "hbmcomm: the MPI of this program has no %s\n", name);
        abort();
    }
    return (function)next;
}

/* MPI_COMM_WORLD; its value depends on the MPI. `path` is that of its library. */
static word world(const char *path) {
    const char *name = "ompi_mpi_comm_world";
    void *data = dlsym(RTLD_DEFAULT, name); /* the program's own copy of it comes first */
    if (!data && library) data = dlsym(library, name);
    if (data) return (word)data;
    return strstr(path, "libmpi_abi") ? 0x101 : 0x44000000;
}

/* The driver's end. */

static int driver = -1;
static struct page *page;

/* Nanoseconds without those for which this rank was stopped, also while it read the clock. */
static uint64_t now(void) {
    struct timespec t;
    uint64_t stopped;
    do {
        stopped = __atomic_load_n(&page->stopped, __ATOMIC_ACQUIRE);
        clock_gettime(CLOCK_MONOTONIC, &t);
        __atomic_signal_fence(__ATOMIC_SEQ_CST);
    } while (stopped != __atomic_load_n(&page->stopped, __ATOMIC_ACQUIRE));
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec - stopped;
}

static int connected(void) {
    const char *path = getenv("HBMCOMM_GATE");
    struct sockaddr_un place = {.sun_family = AF_UNIX};
    if (!path || strlen(path) >= sizeof place.sun_path) return -1;
    memcpy(place.sun_path, path, strlen(path) + 1);
    int end = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (end >= 0 && connect(end, (struct sockaddr *)&place, sizeof place)) {
        close(end);
        return -1;
    }
    return end;
}

static void await_driver(void) {
    char answer;
    while (recv(driver, &answer, 1, 0) < 0 && errno == EINTR) continue;
}

static void tell(const char *text, int file) {
    struct iovec part = {(void *)text, strlen(text)};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (file >= 0) {
        memset(&rights, 0, sizeof rights);
        message.msg_control = rights.bytes;
        message.msg_controllen = sizeof rights.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    while (sendmsg(driver, &message, MSG_NOSIGNAL) < 0 && errno == EINTR) continue;
}

/* Counting. */

enum {
#define CALL(name, count, type, place, root) AT(name),
#define AT(name) AT_(name)
#define AT_(name) at_##name
#define LARGE(name, ...) LARGE_(name, __VA_ARGS__)
#ifdef LARGE_COUNTS
#define LARGE_(name, ...) CALL(name, __VA_ARGS__) AT_(name##_c),
#else
#define LARGE_(name, ...) CALL(name, __VA_ARGS__)
#endif
    CALLS COUNTERS
};
#undef CALL
#undef LARGE_

static const char *const names[COUNTERS + 1] = {
#define NAMED(name) NAMED_(name)
#define NAMED_(name) #name
#define CALL(name, ...) NAMED(name),
#ifdef LARGE_COUNTS
#define LARGE_(name, ...) NAMED_(name), NAMED_(name##_c),
#else
#define LARGE_(name, ...) NAMED_(name),
#endif
    CALLS
#undef CALL
#undef LARGE_
};

static function functions[COUNTERS], size_of_type;
static __thread int depth; /* calls that an MPI makes of itself are a part of one that is counted */

static uint64_t bytes_of(uint64_t count, word type) {
    int size = 0;
    if (count) size_of_type(type, (word)&size, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    return count * (uint64_t)size;
}

static void add(struct counter *counter, uint64_t begun, int sized, uint64_t bytes) {
    int band = 0;
    if (sized)
        for (band = 1; band < BANDS - 1 && bytes > band_ends[band - 1];) band++;
    __atomic_fetch_add(&counter->bytes, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counter->bands[band].calls, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&counter->bands[band].nanoseconds, now() - begun, __ATOMIC_RELAXED);
}

/* MPI_IN_PLACE is 1 or -1 in each MPI. */
static int is_in_place(word buffer) { return buffer == 1 || buffer == (word)-1; }

static inline __attribute__((always_inline)) int counted(int at, const char *name, int sized,
                                                         uint64_t count, word type, PARAMETERS) {
    function next = functions[at];
    if (!next) functions[at] = next = next_of(name);
    if (!page || depth) return (int)next(ARGUMENTS);
    depth++;
    uint64_t bytes = sized ? bytes_of(count, type) : 0, begun = now();
    int code = (int)next(ARGUMENTS);
    add(page->counters + at, begun, sized, bytes);
    depth--;
    return code;
}

#define SIZED(count, place, root)                                                                  \
    (count && !(place && is_in_place(a[place])) && !(root && (int)a[root] < 0))
#define FUNCTION(name, bits, count, type, place, root)                                             \
    EXPORTED int MPI_##name(PARAMETERS);                                                           \
    EXPORTED int PMPI_##name(PARAMETERS) __attribute__((alias("MPI_" #name)));                     \
    EXPORTED int MPI_##name(PARAMETERS) {                                                          \
        const word a[] = {0, ARGUMENTS};                                                           \
        return counted(at_##name, "PMPI_" #name, SIZED(count, place, root), (bits)a[count],        \
                       a[type], ARGUMENTS);                                                        \
    }
#define CALL(name, ...) CALL_(name, __VA_ARGS__)
#define CALL_(name, ...) FUNCTION(name, uint32_t, __VA_ARGS__)
#ifdef LARGE_COUNTS
#define LARGE_(name, ...)                                                                          \
    FUNCTION(name, uint32_t, __VA_ARGS__) FUNCTION(name##_c, uint64_t, __VA_ARGS__)
#else
#define LARGE_(name, ...) CALL_(name, __VA_ARGS__)
#endif
CALLS

/* Begin and end. */

/* Memory that both share; its file goes to the driver. -1 where the kernel gives none. */
static int share_page(void) {
    size_t bytes = offsetof(struct page, counters) + (COUNTERS + 1) * sizeof(struct counter);
    int file = (int)syscall(SYS_memfd_create, "hbmcomm-counters", 1u /* MFD_CLOEXEC */);
    if (file < 0) return -1;
    void *memory = MAP_FAILED;
    if (!ftruncate(file, (off_t)bytes))
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) {
        close(file);
        return -1;
    }
    page = memory;
    for (int at = 0; at < COUNTERS; at++)
        strncpy(page->counters[at].name, names[at], NAME_BYTES - 1);
    return file;
}

static void begin(void) {
    driver = connected();
    if (driver < 0) return;
    static const word none = 0;
    int rank = -1, size = -1;
    function rank_of = next_of("PMPI_Comm_rank"), count_of = next_of("PMPI_Comm_size");
    Dl_info where = {0};
    dladdr(*(void **)&rank_of, &where);
    const char *path = where.dli_fname ? where.dli_fname : "";
    word comm = world(path);
    rank_of(comm, (word)&rank, none, none, none, none, none, none, none, none, none, none);
    count_of(comm, (word)&size, none, none, none, none, none, none, none, none, none, none);
    size_of_type = next_of("PMPI_Type_size");
    int file = getenv("HBMCOMM_UNCOUNTED") ? -1 : share_page();
    char text[600];
    snprintf(text, sizeof text, "rank %d %d %.500s", rank, size, path);
    tell(text, file);
    if (file >= 0) close(file);
    await_driver();
}

static int begun(const char *name, PARAMETERS) {
    int code = (int)next_of(name)(ARGUMENTS);
    if (!code && driver < 0) begin();
    return code;
}

static int ended(const char *name, PARAMETERS) {
    if (driver >= 0) {
        tell("end", -1);
        await_driver();
        page = NULL;
    }
    return (int)next_of(name)(ARGUMENTS);
}

#define END(name, how)                                                                             \
    EXPORTED int MPI_##name(PARAMETERS);                                                           \
    EXPORTED int PMPI_##name(PARAMETERS) __attribute__((alias("MPI_" #name)));                     \
    EXPORTED int MPI_##name(PARAMETERS) { return how("PMPI_" #name, ARGUMENTS); }
END(Init, begun)
END(Init_thread, begun)
END(Finalize, ended)

/* Pin a rank to its share of the CPUs before it allocates anything, unless its launcher has. */

static const char *const local_ranks[] = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID",
                                          "SLURM_LOCALID", "PMI_RANK", "PMIX_RANK", NULL};

/* A number in a variable; -1 for anything else. atoi(3) is another function of the C library from
 * glibc 2.38 on, which older ones do not have. */
static int number(const char *text) {
    int value = *text ? 0 : -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9' || value > 99999999) return -1;
        value = 10 * value + *text - '0';
    }
    return value;
}

__attribute__((constructor)) static void pin(void) {
    const char *ranks = getenv("HBMCOMM_GATE_RANKS"), *usual = getenv("HBMCOMM_GATE_CPUS");
    const char *rank = NULL;
    for (int i = 0; !rank && local_ranks[i]; i++) rank = getenv(local_ranks[i]);
    if (!ranks || !usual || !rank) return;
    cpu_set_t allowed, share;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    int cpus = CPU_COUNT(&allowed), all = number(ranks), own = number(rank);
    if (all < 1 || own < 0 || cpus != number(usual)) return;
    int width = cpus / all > 1 ? cpus / all : 1, first = own * width % cpus;
    CPU_ZERO(&share);
    for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ >= first && seen <= first + width)
            CPU_SET(cpu, &share);
    sched_setaffinity(0, sizeof share, &share);
}
