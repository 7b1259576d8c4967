/* Each store and read of all ranks in one call, on machines with many cores: the input of
   expected_times.py.

   A call is a line `call MACHINE/OPERATION/BYTES`, then for each rank a line `rank PACKAGE NODE
   CACHE` and its events in order. `s OFFSET=VALUE`: it stores a word of its control block. `rRANK
   OFFSET=VALUE`: it has read a word of another rank, with this value or a later one. `dRANK=BYTES`,
   `wRANK=BYTES`: it reads or writes bytes of another rank's message. Left out are the checks
   whether readers of earlier calls have finished, one in several calls: they depend on how far
   ahead each rank is. */
#include "core_test.h"

#ifdef HBM_COUNTERS

#define MOST_EVENTS 65536

/* The EPYC of machines.c when its firmware shows each cache as a NUMA node. */
static spot epyc_by_caches(int rank)
{
    return (spot){0, rank / 8, rank / 8 * 8};
}

typedef struct {
    hbm_call call;
    hbm_event *events[MOST_RANKS];
    uint64_t counts[MOST_RANKS];
} record;

static void body(member *me)
{
    record *k = me->shared;
    hbm_comm *c = me->comm;
    hbm_call call = k->call;
    call.send = (uintptr_t)me->heap;
    call.recv = call.operation == HBM_BCAST ? call.send : (uintptr_t)me->heap + HEAP_BYTES / 2;
    for (int i = 0; i < 2 * SLOTS; i++) /* the first calls set up staging buffers */
        CHECK(hbm_run(c, &call) == HBM_OK, "operation %d failed", call.operation);
    c->count.events = k->events[me->rank] = calloc(MOST_EVENTS, sizeof *c->count.events);
    CHECK(c->count.events, "no memory for events");
    c->count.event_room = MOST_EVENTS;
    CHECK(hbm_run(c, &call) == HBM_OK, "operation %d failed", call.operation);
    c->count.event_room = 0;
    k->counts[me->rank] = c->count.event_count;
    CHECK(c->count.event_count < MOST_EVENTS, "no room for the events of rank %d", me->rank);
}

static void print_events(const hbm_event *events, uint64_t count)
{
    for (const hbm_event *e = events; e < events + count; e++) {
        putchar(e->kind);
        if (e->kind != 's')
            printf("%d", e->rank);
        if (e->kind == 's' || e->kind == 'r')
            printf(" %llu", (unsigned long long)e->offset);
        printf("=%llu\n", (unsigned long long)e->value);
    }
}

static void print_call(const described *m, const char *name, int operation, uint64_t bytes)
{
    record k = {.call = {.operation = (uint8_t)operation, .dtype = HBM_FLOAT32,
                         .reduction = HBM_SUM, .root = 0, .count = bytes / 4}};
    group g = {.size = m->cores, .machine = m->machine, .crowded = 1, .cache_bytes = 1u << 30};
    as_ranks(g, body, &k);
    printf("call %s/%s/%llu\n", m->name, name, (unsigned long long)bytes);
    for (int r = 0; r < m->cores; r++) {
        spot at = m->machine(r);
        printf("rank %d %d %d\n", at.package, at.node, at.cache);
        print_events(k.events[r], k.counts[r]);
        free(k.events[r]);
    }
}

static void print_calls(const described *m)
{
    print_call(m, "Barrier", HBM_BARRIER, 0);
    print_call(m, "Bcast", HBM_BCAST, 8);
    print_call(m, "Allreduce", HBM_ALLREDUCE, 8);
    print_call(m, "Bcast", HBM_BCAST, 65536);
    print_call(m, "Allreduce", HBM_ALLREDUCE, 65536);
    print_call(m, "Allgather", HBM_ALLGATHER, 16384);
}

void test_events(UNUSED uint64_t seed, UNUSED double seconds)
{
    for (const described *m = machines; m < machines + machine_count; m++)
        print_calls(m);
    print_calls(&(described){"EPYC, L3 as node", 128, epyc_by_caches});
}

#endif
