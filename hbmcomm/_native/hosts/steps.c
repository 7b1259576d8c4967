/* The steps of each algorithm between hosts. It is pure, so it needs no ordering.

   A step of number k is computed from the number alone, so that a call needs no memory for its
   steps. A host that has nothing to do in a round has an empty step there. */
#include "hosts/steps.h"

#define KIBIBYTE 1024u
#define SHORT (8 * KIBIBYTE)     /* up to here a round takes longer than the bytes that it saves */
#define ONE_SHOT (12 * KIBIBYTE) /* up to here all messages of a host take less than a round */
#define FEW_HOSTS 8
/* Bytes of each host's part of a message from which on the rounds of a ring are short beside it.
   Each host then hears from one other alone, and has its next part while it sends the last. */
#define LONG (32 * KIBIBYTE)

static int rounds_of(int hosts)
{
    int rounds = 0;
    while (1 << rounds < hosts)
        rounds++;
    return rounds;
}

static int host_at(const hbm_schedule *s, int distance)
{
    return (s->host + distance % s->hosts + s->hosts) % s->hosts;
}

static hbm_range everything(const hbm_schedule *s) { return (hbm_range){0, s->count}; }

/* ---- choices ---- */

static int goes_in_one_shot(int asked, int hosts, uint64_t bytes)
{
    return asked == HBM_AUTO && hosts <= FEW_HOSTS && bytes <= ONE_SHOT / ((uint64_t)hosts - 1);
}

int hbm_choose_allreduce(int asked, int hosts, uint64_t bytes)
{
    if (goes_in_one_shot(asked, hosts, bytes))
        return HBM_ONE_SHOT;
    if (asked != HBM_AUTO)
        return asked;
    if (bytes <= SHORT)
        return HBM_DOUBLING;
    if (hosts & (hosts - 1) || bytes / (uint64_t)hosts >= LONG)
        return HBM_RING;
    return HBM_RABENSEIFNER;
}

/* In a tree the root's link carries each slice once a round; along a chain each slice follows the
   one before. An algorithm without a form for one root leaves the choice to the times of a
   slice. */
static int takes_tree(int asked, int hosts, uint64_t slices)
{
    uint64_t rounds = (uint64_t)rounds_of(hosts);
    return asked == HBM_TREE
           || (asked != HBM_RING && (uint64_t)hosts - 2 + slices > rounds * slices);
}

int hbm_choose_bcast(int asked, int hosts, uint64_t bytes, uint64_t slices)
{
    if (goes_in_one_shot(asked, hosts, bytes))
        return HBM_FAN_OUT;
    return takes_tree(asked, hosts, slices) ? HBM_TREE_BCAST : HBM_CHAIN_BCAST;
}

int hbm_choose_reduce(int asked, int hosts, uint64_t bytes, uint64_t slices)
{
    if (goes_in_one_shot(asked, hosts, bytes))
        return HBM_FAN_IN;
    return takes_tree(asked, hosts, slices) ? HBM_TREE_REDUCE : HBM_CHAIN_REDUCE;
}

/* The first slice and the last one leave links idle, and each slice takes time of a CPU. */
uint64_t hbm_slices(uint64_t count, uint64_t entry, int leaders, int hosts, int kind,
                    uint64_t longest)
{
    static const struct {
        uint64_t slices, least, most; /* slices of a message for which these are no limits */
    } of[] = {[SPLIT] = {4, 512 * KIBIBYTE, 2048 * KIBIBYTE},
              [WHOLE] = {16, 128 * KIBIBYTE, 512 * KIBIBYTE}};
    const uint64_t least_message = 32 * KIBIBYTE; /* of each host, however many share a slice */
    uint64_t bytes = count * entry / (uint64_t)leaders / of[kind].slices;
    uint64_t least = least_message * (kind == SPLIT ? (uint64_t)hosts : 1);
    bytes = bytes > of[kind].least ? bytes : of[kind].least;
    longest = longest ? longest : of[kind].most;
    bytes = bytes < longest ? bytes : longest;
    bytes = bytes > least ? bytes : least;
    uint64_t most = bytes * (uint64_t)leaders / entry;
    most = most ? most : 1;
    uint64_t slices = count / most + (count % most != 0);
    return slices ? slices : 1;
}

/* ---- one root ---- */

/* Along the hosts: each receives from the one before and sends to the one after; `place` is this
   host's. */
static int along(const hbm_schedule *s, int place, int reduces, int number, hbm_step *step)
{
    if (number == 0 && place) {
        step->from = host_at(s, -1);
        step->received = everything(s);
        step->reduces = reduces;
    }
    if (number == 1 && place < s->hosts - 1) {
        step->to = host_at(s, 1);
        step->sent = everything(s);
    }
    return number < 2;
}

/* From the root to all: in each round, hosts that have the entries send them to one more.

   A host that serves several waits for the answer of each before it serves the next. Its messages
   would share the link otherwise: the first host would have the entries, and could pass them on, as
   late as the last. */
static int tree_bcast(const hbm_schedule *s, int number, hbm_step *step)
{
    int place = host_at(s, -s->root), distance = 1 << number;
    if (number >= rounds_of(s->hosts))
        return 0;
    if (place < distance && place + distance < s->hosts) {
        step->to = host_at(s, distance);
        step->sent = everything(s);
        step->answered = place + 2 * distance < s->hosts;
    } else if (distance <= place && place < 2 * distance) {
        step->from = host_at(s, -distance);
        step->received = everything(s);
        step->answered = place + distance < s->hosts;
    }
    return 1;
}

/* From all to the root: the rounds of tree_bcast() backwards. */
static int tree_reduce(const hbm_schedule *s, int number, hbm_step *step)
{
    int rounds = rounds_of(s->hosts);
    hbm_step forth = *step;
    if (number >= rounds)
        return 0;
    tree_bcast(s, rounds - 1 - number, &forth);
    step->to = forth.from;
    step->sent = forth.received;
    step->from = forth.to;
    step->received = forth.sent;
    step->reduces = forth.to >= 0;
    return 1;
}

/* The root and each other host directly, all at once. */
static int fan(const hbm_schedule *s, int inwards, int number, hbm_step *step)
{
    int is_root = s->host == s->root, last = is_root ? s->hosts - 1 : 1;
    int other = is_root ? host_at(s, number + 1) : s->root;
    if (number >= last)
        return 0;
    if (is_root == inwards) {
        step->from = other;
        step->received = everything(s);
        step->reduces = inwards;
    } else {
        step->to = other;
        step->sent = everything(s);
    }
    step->joined = number < last - 1;
    return 1;
}

/* ---- rings ---- */

static hbm_range piece_of(const hbm_schedule *s, int host)
{
    return s->pieces ? s->pieces[host]
                     : hbm_part_of(everything(s), (uint64_t)s->hosts, (uint64_t)host);
}

/* Sends the piece of the turn before, and receives the one before that. */
static void turn(const hbm_schedule *s, int number, int reduces, hbm_step *step)
{
    step->to = host_at(s, 1);
    step->from = host_at(s, -1);
    step->sent = piece_of(s, host_at(s, -number));
    step->received = piece_of(s, host_at(s, -number - 1));
    step->reduces = reduces;
}

/* Piece p is reduced on its way around; its result is on host p. */
static int ring_scatter(const hbm_schedule *s, int number, hbm_step *step)
{
    turn(s, number + 1, 1, step);
    return number < s->hosts - 1;
}

/* Piece p goes from host p to all others. */
static int ring_gather(const hbm_schedule *s, int number, hbm_step *step)
{
    turn(s, number, 0, step);
    return number < s->hosts - 1;
}

/* ---- pairs ---- */

/* The hosts that form pairs: the first ones, a power of two of them. */
static int paired_of(int hosts)
{
    int rounds = rounds_of(hosts);
    return 1 << rounds > hosts ? 1 << (rounds - 1) : 1 << rounds;
}

/* The steps of `among` on the paired hosts, `times` for each doubling of one. Each of the rest
   gives its entries to one of these before, and gets the result after. */
static int with_rest(const hbm_schedule *s,
                     void (*among)(const hbm_schedule *s, int number, hbm_step *step), int times,
                     int number, hbm_step *step)
{
    int paired = paired_of(s->hosts), rest = s->hosts - paired;
    int length = times * rounds_of(paired);
    int sends = s->host >= paired, helps = s->host < rest; /* one of the rest, or its partner */
    if (!sends && number >= helps && number < helps + length) {
        among(s, number - helps, step);
        return 1;
    }
    int first = number == 0, last = number == (sends ? 1 : helps + length);
    if ((!sends && !helps) || (!first && !last))
        return 0;
    int partner = sends ? s->host - paired : s->host + paired;
    if (first == sends) {
        step->to = partner;
        step->sent = everything(s);
    } else {
        step->from = partner;
        step->received = everything(s);
        step->reduces = first;
    }
    return 1;
}

/* All entries in every message: the fewest rounds. */
static void doubling(const hbm_schedule *s, int number, hbm_step *step)
{
    step->to = step->from = s->host ^ 1 << number;
    step->sent = step->received = everything(s);
    step->reduces = 1;
}

/* In each step of the first half, pairs exchange half of what they still reduce. */
static void rabenseifner(const hbm_schedule *s, int number, hbm_step *step)
{
    int paired = paired_of(s->hosts), rounds = rounds_of(paired);
    int halves = number < rounds, last = halves ? number : 2 * rounds - 1 - number;
    hbm_range own = everything(s), given = own;
    for (int round = 0; round <= last; round++) {
        uint64_t upper = (s->host & paired >> (round + 1)) != 0;
        given = hbm_part_of(own, 2, !upper);
        own = hbm_part_of(own, 2, upper);
    }
    step->to = step->from = s->host ^ paired >> (last + 1);
    step->sent = halves ? given : own;
    step->received = halves ? own : given;
    step->reduces = halves;
}

/* Everything to and from every other host, all at once. */
static int one_shot(const hbm_schedule *s, int number, hbm_step *step)
{
    if (number >= s->hosts - 1)
        return 0;
    step->to = host_at(s, number + 1);
    step->from = host_at(s, -number - 1);
    step->sent = step->received = everything(s);
    step->reduces = 1;
    step->joined = number < s->hosts - 2;
    return 1;
}

/* A barrier: entry 0 goes to a few other hosts at once, or to one host in each of few rounds. Others
   come to the entries after it. */
static int meet(const hbm_schedule *s, int number, hbm_step *step)
{
    int few = s->hosts <= FEW_HOSTS, last = few ? s->hosts - 1 : rounds_of(s->hosts);
    int distance = few ? number + 1 : 1 << number;
    uint64_t place = (uint64_t)number + 1;
    if (number >= last)
        return 0;
    step->to = host_at(s, distance);
    step->from = host_at(s, -distance);
    step->sent = (hbm_range){0, 1};
    step->received = (hbm_range){place, place + 1};
    step->joined = few && number < last - 1;
    return 1;
}

/* ---- by name ---- */

/* One algorithm after another, the first of which has `first` steps. */
static int then(int number, int first, int (*one)(const hbm_schedule *, int, hbm_step *),
                int (*other)(const hbm_schedule *, int, hbm_step *), const hbm_schedule *s,
                hbm_step *step)
{
    return number < first ? one(s, number, step) : other(s, number - first, step);
}

int hbm_step_of(const hbm_schedule *s, int number, hbm_step *step)
{
    *step = (hbm_step){.to = -1, .from = -1};
    switch (s->algorithm) {
    case HBM_RING: return then(number, s->hosts - 1, ring_scatter, ring_gather, s, step);
    case HBM_DOUBLING: return with_rest(s, doubling, 1, number, step);
    case HBM_RABENSEIFNER: return with_rest(s, rabenseifner, 2, number, step);
    case HBM_TREE: return then(number, rounds_of(s->hosts), tree_reduce, tree_bcast, s, step);
    case HBM_ONE_SHOT: return one_shot(s, number, step);
    case HBM_TREE_BCAST: return tree_bcast(s, number, step);
    case HBM_TREE_REDUCE: return tree_reduce(s, number, step);
    case HBM_CHAIN_BCAST: return along(s, host_at(s, -s->root), 0, number, step);
    case HBM_CHAIN_REDUCE: return along(s, host_at(s, -s->root - 1), 1, number, step);
    case HBM_FAN_OUT: return fan(s, 0, number, step);
    case HBM_FAN_IN: return fan(s, 1, number, step);
    case HBM_RING_SCATTER: return ring_scatter(s, number, step);
    case HBM_RING_GATHER: return ring_gather(s, number, step);
    case HBM_MEET: return meet(s, number, step);
    default: return 0;
    }
}

int hbm_only_sends(const hbm_schedule *s)
{
    hbm_step step;
    for (int number = 0; hbm_step_of(s, number, &step); number++)
        if (step.from >= 0 && step.received.begin < step.received.end)
            return 0;
    return 1;
}
