/* Flights: the steps of an algorithm between hosts, on the messages of a wire.

   Several flights are on their way at a time, and each goes on when its own messages have come and
   gone. The wire keeps the order of messages between two ranks with equal tags. At most AT_ONCE
   slices are on their way on any rank, and they end in their order: a slice with the tag of an
   earlier one begins on a rank when that one is over there.

   Ordering: the lock of the communicator guards all but `lost`, which guards no data.

   Model: hosts/flights.pml */
#include "hosts/flights.h"

#include <poll.h>
#include <stdlib.h>

#include "comm/failure.h"
#include "kernels/reduction.h"

#define ANSWERED (64 * 1024) /* bytes from which on a message takes longer than its answer */

int hbm_wire_fails(hbm_hosts *h, int code)
{
    hbm_failure why = {.status = HBM_WIRE_FAILED, .rank = h->rank, .other = h->rank,
                       .own_what = (uint64_t)(int64_t)code};
    return hbm_fail(h->all, &why);
}

hbm_flight *hbm_new_flight(hbm_hosts *h)
{
    hbm_flight *f = &h->flights[h->slice % AT_ONCE];
    *f = (hbm_flight){.slice = h->slice, .lane = h->lane, .root = h->root, .entry = h->entry,
                      .held = f->held, .result = f->result};
    return f;
}

int hbm_has_landed(const hbm_hosts *h, uint64_t slice)
{
    const hbm_flight *f = &h->flights[slice % AT_ONCE];
    return f->slice != slice || f->is_over;
}

/* ---- messages ---- */

static int has_room(hbm_hosts *h)
{
    if (h->request_count < h->request_room)
        return 1;
    int room = 2 * h->request_room + 64;
    uint64_t *requests = realloc(h->requests, (size_t)room * sizeof *requests);
    if (requests)
        h->requests = requests;
    unsigned char *flight_of = realloc(h->flight_of, (size_t)room);
    if (flight_of)
        h->flight_of = flight_of;
    if (requests && flight_of)
        h->request_room = room;
    return requests && flight_of;
}

static int add(hbm_hosts *h, hbm_flight *f, int sends, int rank, uintptr_t at, uint64_t bytes)
{
    const hbm_wire *w = &h->wire;
    int tag = (int)(f->slice % AT_ONCE);
    if (!has_room(h))
        return hbm_blame(h->all, HBM_NO_MEMORY, h->all->rank);
    uint64_t *request = &h->requests[h->request_count];
    int code = sends ? w->send(w->self, rank, tag, (const void *)at, bytes, request)
                     : w->receive(w->self, rank, tag, (void *)at, bytes, request);
    if (code)
        return hbm_wire_fails(h, code);
    h->flight_of[h->request_count++] = (unsigned char)(f - h->flights);
    f->pending++;
    return HBM_OK;
}

/* Messages that are not long go in parts for which the wire need not ask the receiver. */
static int add_parts(hbm_hosts *h, hbm_flight *f, int sends, int rank, uintptr_t at, uint64_t bytes)
{
    uint64_t most = bytes <= h->wire.long_bytes ? h->wire.short_bytes : h->wire.most;
    int status = HBM_OK;
    for (uint64_t done = 0, part; done < bytes && !status; done += part) {
        part = bytes - done < most ? bytes - done : most;
        status = add(h, f, sends, rank, at + done, part);
    }
    return status;
}

int hbm_send_to(hbm_hosts *h, hbm_flight *f, int rank, uintptr_t from, uint64_t bytes)
{
    return add_parts(h, f, 1, rank, from, bytes);
}

int hbm_receive_from(hbm_hosts *h, hbm_flight *f, int rank, uintptr_t to, uint64_t bytes)
{
    return add_parts(h, f, 0, rank, to, bytes);
}

int hbm_has_news(const hbm_hosts *h)
{
    struct pollfd news = {.fd = h->news, .events = POLLIN};
    return h->news >= 0 && poll(&news, 1, 0) > 0;
}

/* ---- steps ---- */

static uint64_t bytes_of(const hbm_flight *f, hbm_range range)
{
    return (range.end - range.begin) * f->entry;
}

static int rank_of(const hbm_hosts *h, const hbm_flight *f, int host)
{
    return f->lane < 0 ? host : hbm_leader_of(h, host, f->lane, f->root);
}

/* The steps that begin together from the current one on: how many, and the bytes that they send,
   and that are held until all have come. */
static int joined_steps(const hbm_flight *f, uint64_t *sent, uint64_t *held)
{
    hbm_step step;
    int n = 0;
    *sent = *held = 0;
    do {
        if (!hbm_step_of(&f->steps, f->step + n, &step))
            return n;
        n++;
        *sent += step.to >= 0 ? bytes_of(f, step.sent) : 0;
        *held += step.from >= 0 && step.reduces ? bytes_of(f, step.received) : 0;
    } while (step.joined);
    return n;
}

/* Where entries are that this host sends: what it has received and reduced is at `at`. */
static const char *sent_from(const hbm_flight *f)
{
    return f->input && !f->has_received ? f->input : f->at;
}

/* Where the entries are that received ones are reduced with. A ring reduces each entry once; in the
   other algorithms later steps reduce what the first one has reduced. */
static const char *reduced_with(const hbm_flight *f)
{
    return f->input && f->steps.algorithm == HBM_RING ? f->input : sent_from(f);
}

static int begin_steps(hbm_hosts *h, hbm_flight *f, int n)
{
    hbm_step step;
    uintptr_t held = (uintptr_t)f->held.at, at = (uintptr_t)f->at;
    int status = HBM_OK;
    for (int i = 0; i < n && !status; i++) {
        hbm_step_of(&f->steps, f->step + i, &step);
        uint64_t bytes = step.from >= 0 ? bytes_of(f, step.received) : 0;
        uintptr_t to = step.reduces ? held : at + step.received.begin * f->entry;
        if (bytes)
            status = hbm_receive_from(h, f, rank_of(h, f, step.from), to, bytes);
        held += step.reduces ? bytes : 0;
    }
    for (int i = 0; i < n && !status; i++) {
        hbm_step_of(&f->steps, f->step + i, &step);
        uint64_t bytes = step.to >= 0 ? bytes_of(f, step.sent) : 0;
        if (bytes)
            status = hbm_send_to(h, f, rank_of(h, f, step.to),
                                 (uintptr_t)sent_from(f) + step.sent.begin * f->entry, bytes);
    }
    f->joined = n;
    return status;
}

/* Reduces what has come with what is in place, in the order of the hosts. */
static int reduce(hbm_hosts *h, hbm_flight *f)
{
    hbm_step step;
    hbm_range range = {0, 0};
    const char *held = f->held.at, *own = reduced_with(f);
    int ins = 0, has_inputs = 0;
    for (int host = 0; host < f->steps.hosts; host++)
        h->in[host] = NULL;
    for (int i = 0; i < f->joined; i++) {
        hbm_step_of(&f->steps, f->step + i, &step);
        if (step.from < 0 || step.received.begin == step.received.end)
            continue;
        f->has_received = 1;
        if (!step.reduces)
            continue;
        range = step.received;
        h->in[step.from] = held;
        held += bytes_of(f, range);
        has_inputs = 1;
    }
    if (!has_inputs)
        return HBM_OK;
    h->in[f->steps.host] = own + range.begin * f->entry;
    for (int host = 0; host < f->steps.hosts; host++)
        if (h->in[host])
            h->in[ins++] = h->in[host];
    void *out = f->at + range.begin * f->entry;
    int status = hbm_combine(&h->o->call, h->in, ins, &out, 1, 0, bytes_of(f, range), IN_ORDER);
    if (!status && f->kept)
        hbm_copy(f->kept + range.begin * f->entry, f->held.at, bytes_of(f, range));
    return status ? hbm_blame(h->all, status, h->all->rank) : HBM_OK;
}

/* Begins to answer a long message that has come, and to take the answer to one that was sent. */
static int answer(hbm_hosts *h, hbm_flight *f)
{
    hbm_step step;
    int status = HBM_OK;
    hbm_step_of(&f->steps, f->step, &step);
    if (!step.answered)
        return HBM_OK;
    if (step.to >= 0 && bytes_of(f, step.sent) >= ANSWERED)
        status = add(h, f, 0, rank_of(h, f, step.to), 0, 0);
    if (!status && step.from >= 0 && bytes_of(f, step.received) >= ANSWERED)
        status = add(h, f, 1, rank_of(h, f, step.from), 0, 0);
    return status;
}

static int is_blocked(const hbm_hosts *h, const hbm_flight *f)
{
    return f->pending || (f->in_turn && f->slice && !hbm_has_landed(h, f->slice - 1));
}

/* Goes on with a flight as far as it can. */
static int advance_flight(hbm_hosts *h, hbm_flight *f)
{
    uint64_t sent, held;
    int status = HBM_OK, n;
    while (!f->is_over && !is_blocked(h, f) && !status) {
        if (f->joined) { /* their messages have come and gone */
            if (!f->is_answering) {
                status = reduce(h, f);
                f->is_answering = 1;
                status = status ? status : answer(h, f);
            } else {
                f->step += f->joined;
                f->joined = f->is_answering = 0;
            }
            h->moved = 1;
            continue;
        }
        n = joined_steps(f, &sent, &held);
        if (sent && hbm_has_news(h))
            return HBM_OK;
        if (held && !hbm_take(&f->held, held))
            return hbm_blame(h->all, HBM_NO_MEMORY, h->all->rank);
        f->is_over = !n;
        status = begin_steps(h, f, n);
        h->moved = 1;
    }
    return status;
}

/* Forgets the requests that are complete; the others keep their order. */
static void forget_complete(hbm_hosts *h)
{
    int n = 0;
    for (int i = 0; i < h->request_count; i++) {
        if (!h->requests[i]) {
            h->flights[h->flight_of[i]].pending--;
            h->moved = 1;
            continue;
        }
        h->requests[n] = h->requests[i];
        h->flight_of[n++] = h->flight_of[i];
    }
    h->request_count = n;
}

int hbm_advance_flights(hbm_hosts *h)
{
    if (atomic_load_explicit(&h->lost, memory_order_relaxed))
        return hbm_blame(h->all, HBM_LOST, h->all->rank);
    if (h->request_count) {
        int code = h->wire.test(h->wire.self, h->requests, h->request_count);
        if (code)
            return hbm_wire_fails(h, code);
        forget_complete(h);
    }
    int status = HBM_OK;
    for (uint64_t slice = h->ended; slice <= h->begun && !status; slice++)
        if (!hbm_has_landed(h, slice))
            status = advance_flight(h, &h->flights[slice % AT_ONCE]);
    return status;
}

int hbm_cancel_flights(hbm_hosts *h)
{
    if (h->request_count && h->wire.cancel) {
        h->wire.cancel(h->wire.self, h->requests, h->request_count);
        h->request_count = 0;
    }
    return h->request_count > 0;
}
