/* A wire between threads that are ranks: messages between two ranks with equal tags match in order.

   A request shows as complete in some later test, not at once. */
#include "core_test.h"

#include <pthread.h>

typedef struct request {
    struct request *next;
    int sends, from, to, tag, is_complete;
    char *at;
    uint64_t bytes;
} request;

typedef struct {
    world *in;
    int rank;
} end;

struct world {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    request *unmatched; /* in the order of their posts */
    int only_waits;
    dice dice;
    end ends[MOST_RANKS];
};

world *new_world(int only_waits, uint64_t seed)
{
    world *w = calloc(1, sizeof *w);
    CHECK(w, "no memory");
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->only_waits = only_waits;
    w->dice.state = seed;
    return w;
}

/* Finds the first post that matches, takes it from the list, and moves the data. */
static int match(world *w, request *new)
{
    for (request **at = &w->unmatched; *at; at = &(*at)->next) {
        request *old = *at;
        if (old->sends == new->sends || old->from != new->from || old->to != new->to
            || old->tag != new->tag)
            continue;
        CHECK(old->bytes == new->bytes, "rank %d sends %llu bytes where rank %d takes %llu",
              new->from, (unsigned long long)(new->sends ? new : old)->bytes, new->to,
              (unsigned long long)(new->sends ? old : new)->bytes);
        if (new->bytes)
            memcpy(new->sends ? old->at : new->at, new->sends ? new->at : old->at, new->bytes);
        *at = old->next;
        old->is_complete = new->is_complete = 1;
        pthread_cond_broadcast(&w->changed);
        return 1;
    }
    return 0;
}

static int post_request(world *w, request r, uint64_t *number)
{
    request *new = malloc(sizeof *new), **last = &w->unmatched;
    CHECK(new, "no memory");
    *new = r;
    pthread_mutex_lock(&w->lock);
    if (!match(w, new)) {
        while (*last)
            last = &(*last)->next;
        *last = new;
    }
    pthread_mutex_unlock(&w->lock);
    *number = (uint64_t)(uintptr_t)new;
    return 0;
}

static int send_message(void *self, int rank, int tag, const void *from, uint64_t bytes,
                        uint64_t *number)
{
    end *e = self;
    return post_request(e->in, (request){.sends = 1, .from = e->rank, .to = rank, .tag = tag,
                                         .at = (char *)from, .bytes = bytes}, number);
}

static int receive_message(void *self, int rank, int tag, void *to, uint64_t bytes,
                           uint64_t *number)
{
    end *e = self;
    return post_request(e->in, (request){.from = rank, .to = e->rank, .tag = tag, .at = to,
                                         .bytes = bytes}, number);
}

static void forget(uint64_t *number)
{
    free((request *)(uintptr_t)*number);
    *number = 0;
}

static int test_requests(void *self, uint64_t *numbers, int n)
{
    world *w = ((end *)self)->in;
    if (w->only_waits)
        return 0;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < n; i++)
        if (((request *)(uintptr_t)numbers[i])->is_complete && roll(&w->dice, 3))
            forget(&numbers[i]);
    pthread_mutex_unlock(&w->lock);
    return 0;
}

static int wait_for_request(void *self, uint64_t *number)
{
    world *w = ((end *)self)->in;
    pthread_mutex_lock(&w->lock);
    while (!((request *)(uintptr_t)*number)->is_complete)
        pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
    forget(number);
    return 0;
}

static void cancel_requests(void *self, uint64_t *numbers, int n)
{
    world *w = ((end *)self)->in;
    pthread_mutex_lock(&w->lock);
    for (int i = 0; i < n; i++) {
        for (request **at = &w->unmatched; *at; at = &(*at)->next)
            if (*at == (request *)(uintptr_t)numbers[i]) {
                *at = (*at)->next;
                break;
            }
        forget(&numbers[i]);
    }
    pthread_mutex_unlock(&w->lock);
}

hbm_wire wire_of(world *w, int rank)
{
    w->ends[rank] = (end){w, rank};
    return (hbm_wire){.self = &w->ends[rank], .send = send_message, .receive = receive_message,
                      .test = test_requests, .wait = w->only_waits ? wait_for_request : NULL,
                      .cancel = cancel_requests, .short_bytes = 9000, .long_bytes = 40000,
                      .most = 100000};
}

void end_world(world *w)
{
    if (!w)
        return;
    CHECK(!w->unmatched, "a message that nobody takes");
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
