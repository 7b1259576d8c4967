/* Claims: one owner of a word in shared memory, for as long as the owner's process lives.

   They are for memory that nothing else guards. A device that several containers use has a file of
   its own in each, so no file lock reaches from one to another. The word holds a thread's number
   and the boot's. When that thread dies, in whatever way, the kernel marks the word
   (set_robust_list(2)); this needs no common numbers of processes, only the memory. A word from an
   earlier boot, or other data in its place, counts as free.

   The owner is a thread that does nothing else: a robust lock ends with its thread, and a program's
   threads come and go. The thread sleeps until hbm_release_claim() or the end of the process.

   Ordering: one compare-and-exchange with acquire and release takes the word, so a new owner sees
   what the last one wrote, and two never win. */
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "api.h"
#include "memory/fork.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1024 * 1024)

typedef union {
    _Atomic uint64_t both;
    struct {
        uint32_t owner; /* in the kernel's format: a thread's number, or FUTEX_OWNER_DIED */
        uint32_t boot;
    } part;
} word;

struct hbm_claim {
    struct robust_list entry;
    struct robust_list_head head;
    word *owner_word;
    uint32_t boot;
    pid_t process;
    pthread_t thread;
    _Atomic uint32_t state; /* of the thread: STARTING, then the outcome, then LEAVING */
};

enum { STARTING, TAKEN, REFUSED, FAILED, LEAVING };

static uint64_t word_of(uint32_t owner, uint32_t boot)
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

int hbm_is_claimed(uintptr_t address, uint32_t boot)
{
    const word *w = (const word *)address;
    return has_owner(atomic_load_explicit(&w->both, memory_order_acquire), boot);
}

static void set_state(hbm_claim *claim, uint32_t state)
{
    atomic_store_explicit(&claim->state, state, memory_order_release);
    syscall(SYS_futex, &claim->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Waits until the state differs from `state`, and returns it. */
static uint32_t await_other(hbm_claim *claim, uint32_t state)
{
    uint32_t current;
    while ((current = atomic_load_explicit(&claim->state, memory_order_acquire)) == state)
        syscall(SYS_futex, &claim->state, FUTEX_WAIT_PRIVATE, state, NULL, NULL, 0);
    return current;
}

/* Sets the entry that the kernel checks besides the list, or NULL. The kernel checks when the
   thread has died, at whatever instruction, so the compiler must not move this store past its
   neighbours. */
static void name_pending(hbm_claim *claim, struct robust_list *entry)
{
    atomic_signal_fence(memory_order_seq_cst);
    claim->head.list_op_pending = entry;
    atomic_signal_fence(memory_order_seq_cst);
}

/* The thread that owns a claim. Whenever it dies, the kernel finds its word: as the pending entry
   while the word is taken or released, and in the list between.

   The kernel marks a pending word if it holds the number of the thread that died, as counted in
   that thread's container. An owner in another container may have the same number, so a word that
   has an owner is never pending. A window of a few instructions remains: a thread that is killed
   between finding a word free and losing it to another, or between releasing it and clearing the
   pending entry, marks the word of a new owner that has the same number. */
static void *keep(void *argument)
{
    hbm_claim *claim = argument;
    _Atomic uint64_t *both = &claim->owner_word->both;
    uint64_t mine = word_of((uint32_t)syscall(SYS_gettid), claim->boot);
    claim->entry.next = claim->head.list.next = &claim->head.list;
    claim->head.futex_offset = (long)((uintptr_t)&claim->owner_word->part.owner
                                      - (uintptr_t)&claim->entry);
    if (syscall(SYS_set_robust_list, &claim->head, sizeof claim->head) != 0) {
        set_state(claim, FAILED);
        return NULL;
    }
    uint64_t seen = atomic_load_explicit(both, memory_order_acquire);
    for (int won = 0; !won;) {
        if (has_owner(seen, claim->boot)) {
            set_state(claim, REFUSED);
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
    set_state(claim, TAKEN);
    await_other(claim, TAKEN);
    name_pending(claim, &claim->entry);
    claim->head.list.next = &claim->head.list;
    atomic_store_explicit(both, word_of(0, claim->boot), memory_order_release);
    name_pending(claim, NULL);
    return NULL;
}

static int start(hbm_claim *claim)
{
    pthread_attr_t attributes;
    int problem = pthread_attr_init(&attributes);
    if (problem)
        return problem;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    problem = hbm_start_thread(&claim->thread, &attributes, keep, claim);
    pthread_attr_destroy(&attributes);
    return problem;
}

hbm_claim *hbm_acquire_claim(uintptr_t address, uint32_t boot)
{
    hbm_claim *claim = calloc(1, sizeof *claim);
    if (!claim)
        return NULL;
    claim->owner_word = (word *)address;
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

/* The child of a fork has neither the thread nor the claim: there this does nothing. */
void hbm_release_claim(hbm_claim *claim)
{
    if (claim->process != getpid())
        return;
    set_state(claim, LEAVING);
    pthread_join(claim->thread, NULL);
    free(claim);
}
