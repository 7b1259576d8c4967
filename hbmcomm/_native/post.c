/* Saying which call a rank is in, and meeting the others in it.

   Ordering: a slot's fields and data are written before its sequence is stored with release, and
   read after it was loaded with acquire. A slot is used again SLOTS calls later, once every other
   rank has entered a call after the one that it held, and so has read it. The hash over all calls
   makes one comparison cover every call since the beginning. */
#include "core.h"

static uint64_t pack(const hbm_call *call)
{
    return (uint64_t)call->operation | (uint64_t)call->dtype << 8 | (uint64_t)call->reduction << 16
           | (uint64_t)(uint32_t)call->root << 32;
}

typedef struct {
    uint64_t what, count;
} slot_words;

static hbm_call unpack(const slot_words *s)
{
    hbm_call call = {.operation = (uint8_t)s->what, .dtype = (uint8_t)(s->what >> 8),
                     .reduction = (uint8_t)(s->what >> 16), .root = (int32_t)(s->what >> 32),
                     .count = s->count};
    return call;
}

static uint64_t chained(uint64_t chain, uint64_t what, uint64_t count)
{
    chain = (chain ^ what) * 0x9E3779B97F4A7C15u;
    chain = (chain ^ (chain >> 29) ^ count) * 0xBF58476D1CE4E5B9u;
    return chain ^ (chain >> 32);
}

/* The offset in this rank's segment at which peers find an address; 0 outside of its heap. */
static uint64_t offset_of(const hbm_comm *c, uintptr_t address)
{
    uint64_t offset = address - (uintptr_t)c->segments[c->rank];
    return offset >= HEAP_OFFSET && offset < c->segment_bytes ? offset : 0;
}

int hbm_is_shared(const hbm_comm *c, uintptr_t address) { return offset_of(c, address) != 0; }

/* Until every other rank has entered call `sequence`: then no one reads older slots. */
static int wait_for_stragglers(hbm_comm *c, uint64_t sequence)
{
    for (int r = 0; r < c->size; r++) {
        int status = r == c->rank ? HBM_OK
                                  : hbm_await(c, r, &slot_of(c->ranks[r], sequence)->sequence,
                                              sequence);
        if (status)
            return status;
    }
    c->slowest = sequence;
    return HBM_OK;
}

int hbm_post(hbm_comm *c, const hbm_call *call, const void *data, uint64_t bytes)
{
    uint64_t sequence = ++c->sequence;
    if (sequence >= SLOTS && c->slowest + SLOTS <= sequence) {
        int status = wait_for_stragglers(c, sequence - SLOTS + 1);
        if (status)
            return status;
    }
    slot *mine = slot_of(c->own, sequence);
    uint64_t what = pack(call);
    atomic_store_explicit(&mine->sequence, 0, memory_order_relaxed); /* for recall */
    atomic_thread_fence(memory_order_release);
    c->chain = chained(c->chain, what, call->count);
    mine->chain = c->chain;
    atomic_store_explicit(&mine->what, what, memory_order_relaxed);
    atomic_store_explicit(&mine->count, call->count, memory_order_relaxed);
    mine->send = offset_of(c, call->send);
    mine->recv = offset_of(c, call->recv);
    if (bytes)
        memcpy(mine->data, data, bytes);
    atomic_store_explicit(&mine->sequence, sequence, memory_order_release);
    c->ring_later = 1;
    return HBM_OK;
}

/* Copies what a rank said of call `sequence`; 0 where its slot holds a later call by now. */
static int recall(const hbm_comm *c, int peer, uint64_t sequence, slot_words *words)
{
    const slot *other = slot_of(c->ranks[peer], sequence);
    words->what = atomic_load_explicit(&other->what, memory_order_relaxed);
    words->count = atomic_load_explicit(&other->count, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    uint64_t before = sequence + SLOTS - 1; /* the call after which the slot is written again */
    return atomic_load_explicit(&other->sequence, memory_order_relaxed) == sequence
           && atomic_load_explicit(&slot_of(c->ranks[peer], before)->sequence,
                                   memory_order_relaxed) < before;
}

/* Names the first call in which this rank and a peer differ, of those that both still hold. */
static int mismatch(hbm_comm *c, int peer)
{
    uint64_t last = c->sequence, first = last < SLOTS ? 1 : last - SLOTS + 1;
    hbm_failure why = {.status = HBM_MISMATCH, .rank = c->rank, .other = peer};
    for (uint64_t s = last; s >= first; s--) {
        slot_words mine, others;
        recall(c, c->rank, s, &mine);
        if (recall(c, peer, s, &others)
            && (mine.what != others.what || mine.count != others.count)) {
            why.own = unpack(&mine);
            why.others = unpack(&others);
        }
    }
    return hbm_fail(c, &why);
}

int hbm_meet(hbm_comm *c, int peer, const slot **met)
{
    const slot *other = slot_of(c->ranks[peer], c->sequence);
    int status = hbm_await(c, peer, &other->sequence, c->sequence);
    if (status)
        return status;
    if (other->chain != c->chain)
        return mismatch(c, peer);
    *met = other;
    return HBM_OK;
}

int hbm_meet_all(hbm_comm *c)
{
    const slot *met;
    for (int r = 0; r < c->size; r++) {
        int status = r == c->rank ? HBM_OK : hbm_meet(c, r, &met);
        if (status)
            return status;
    }
    c->slowest = c->sequence;
    return HBM_OK;
}
