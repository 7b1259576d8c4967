/* Who has a place in shared memory: a word that says so for as long as its owner lives.

   For memory that nothing else guards: a device that several containers are given has a file of its
   own in each, so no file lock reaches from one to another. The word holds the number of a thread
   and of the boot that it runs in. It is taken by one compare-and-exchange (acquire and release: who
   takes it sees what the one before wrote, and two never win). When the thread dies, however, the
   kernel marks the word (set_robust_list(2)): this needs no common name for processes, just the
   memory. What a word held before this boot, or whatever else lay there, does not count.

   The thread is one that does nothing else: a lock of this sort ends with the thread that took it,
   and a program's threads come and go. What ends its sleep is hbm_give, or the process. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "interface.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1024 * 1024)

typedef union {
    _Atomic uint64_t both;
    struct {
        uint32_t owner; /* as the kernel's robust list wants it: a thread, or FUTEX_OWNER_DIED */
        uint32_t boot;
    } part;
} word;

struct hbm_claim {
    struct robust_list entry;
    struct robust_list_head head;
    word *place;
    uint32_t boot;
    pid_t process;
    pthread_t thread;
    _Atomic uint32_t state; /* of the thread: STARTING, then what became of it, then LEAVING */
};

enum { STARTING, TAKEN, REFUSED, FAILED, LEAVING };

static uint64_t put_together(uint32_t owner, uint32_t boot)
{
    uint32_t parts[2] = {owner, boot};
    uint64_t both;
    memcpy(&both, parts, sizeof both);
    return both;
}

static int has_owner(uint64_t both, uint32_t boot)
{
    uint32_t parts[2];
    memcpy(parts, &both, sizeof both);
    return parts[1] == boot && (parts[0] & FUTEX_TID_MASK) && !(parts[0] & FUTEX_OWNER_DIED);
}

int hbm_is_taken(uintptr_t place, uint32_t boot)
{
    const word *w = (const word *)place;
    return has_owner(atomic_load_explicit(&w->both, memory_order_acquire), boot);
}

static void tell(hbm_claim *claim, uint32_t state)
{
    atomic_store_explicit(&claim->state, state, memory_order_release);
    syscall(SYS_futex, &claim->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Until the state is another one than `state`. */
static uint32_t await_other(hbm_claim *claim, uint32_t state)
{
    uint32_t found;
    while ((found = atomic_load_explicit(&claim->state, memory_order_acquire)) == state)
        syscall(SYS_futex, &claim->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
    return found;
}

/* What the kernel looks at beside the list, or NULL. It looks when the thread has died, wherever that
   was: so the compiler must leave this store between those before it and after it. */
static void name_pending(hbm_claim *claim, struct robust_list *entry)
{
    atomic_signal_fence(memory_order_seq_cst);
    claim->head.list_op_pending = entry;
    atomic_signal_fence(memory_order_seq_cst);
}

/* Whatever moment the thread dies at, the kernel finds its word: as the pending one while it is
   being taken or given back, in the list between.

   The kernel marks a word that it is shown if it holds the number of the thread that died, as that
   thread's own container counts; in another the owner may have the same. Therefore a word that has
   an owner is never named as pending. What remains are a few instructions: who is killed between
   finding a word free and losing it to another, or between giving it back and naming it no more,
   marks the word of a new owner that lives, if that has the same number. */
static void *keep(void *argument)
{
    hbm_claim *claim = argument;
    _Atomic uint64_t *both = &claim->place->both;
    uint64_t mine = put_together((uint32_t)syscall(SYS_gettid), claim->boot);
    claim->entry.next = claim->head.list.next = &claim->head.list;
    claim->head.futex_offset = (long)((uintptr_t)&claim->place->part.owner
                                      - (uintptr_t)&claim->entry);
    if (syscall(SYS_set_robust_list, &claim->head, sizeof claim->head) != 0) {
        tell(claim, FAILED);
        return NULL;
    }
    uint64_t seen = atomic_load_explicit(both, memory_order_acquire);
    for (int won = 0; !won;) {
        if (has_owner(seen, claim->boot)) {
            tell(claim, REFUSED);
            return NULL;
        }
        name_pending(claim, &claim->entry);
        won = atomic_compare_exchange_strong_explicit(both, &seen, mine, memory_order_acq_rel,
                                                      memory_order_acquire);
        if (!won)
            name_pending(claim, NULL);
    }
    claim->head.list.next = &claim->entry;
    name_pending(claim, NULL);
    tell(claim, TAKEN);
    await_other(claim, TAKEN);
    name_pending(claim, &claim->entry);
    claim->head.list.next = &claim->head.list;
    atomic_store_explicit(both, put_together(0, claim->boot), memory_order_release);
    name_pending(claim, NULL);
    return NULL;
}

static int start(hbm_claim *claim)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    int problem = pthread_attr_init(&attributes);
    if (problem)
        return problem;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    sigfillset(&all); /* signals are for the program's own threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    problem = pthread_create(&claim->thread, &attributes, keep, claim);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return problem;
}

hbm_claim *hbm_take(uintptr_t place, uint32_t boot)
{
    hbm_claim *claim = calloc(1, sizeof *claim);
    if (!claim)
        return NULL;
    claim->place = (word *)place;
    claim->boot = boot;
    claim->process = getpid();
    int problem = start(claim);
    if (!problem) {
        uint32_t state = await_other(claim, STARTING);
        if (state == TAKEN)
            return claim;
        pthread_join(claim->thread, NULL);
        problem = state == REFUSED ? EBUSY : ENOSYS;
    }
    free(claim);
    errno = problem;
    return NULL;
}

/* In the child of a fork, which has neither the thread nor the claim, this does nothing. */
void hbm_give(hbm_claim *claim)
{
    if (claim->process != getpid())
        return;
    tell(claim, LEAVING);
    pthread_join(claim->thread, NULL);
    free(claim);
}
