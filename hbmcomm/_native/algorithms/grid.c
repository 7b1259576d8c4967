/* Allgather of short blocks among many ranks, in two steps over parts of the machine: NUMA nodes,
   or the largest groups of one node.

   First each rank takes the blocks of its own part, and from every other part its share of the
   blocks: the ranks of a part divide the blocks of other parts among them. Then it takes from its
   mates what they have fetched. A byte crosses to each other part once, and a rank reads about 2
   sqrt(P) posts instead of P.

   Ordering: posts.c; the fetched blocks are the data of a second post. */
#include "algorithms/algorithms.h"
#include "kernels/copy.h"
#include "comm/posts.h"

#define FETCHED (RECORDS - 1) /* the record with the blocks that a rank has fetched for its mates */

enum { BEGINNING, FETCHING, PASSING };

static uint64_t own_room(const hbm_operation *o) { return (o->block + LINE - 1) / LINE * LINE; }

/* The number of blocks of other parts that a member fetches. */
static int share_of(const hbm_parts *p, int part, int number)
{
    int m = part_size(p, part), share = 0;
    for (int other = 0; other < p->count; other++)
        if (other != part && part_size(p, other) > number)
            share += (part_size(p, other) - number + m - 1) / m;
    return share;
}

uint64_t hbm_grid_room(const hbm_comm *c, uint64_t block)
{
    const hbm_parts *p = &c->groups.grid;
    uint64_t most = 0;
    for (int part = 0; part < p->count; part++) {
        uint64_t share = (uint64_t)share_of(p, part, 0);
        most = share > most ? share : most;
    }
    return (block + LINE - 1) / LINE * LINE + most * block;
}

static void put(const hbm_operation *o, int rank, const void *from)
{
    hbm_copy((char *)o->call.recv + (uint64_t)rank * o->block, from, o->block);
}

static int copy_post(hbm_operation *o, int rank)
{
    const post *p;
    int status = hbm_find_post(o, rank, 0, &p);
    if (status)
        return status;
    put(o, rank, hbm_post_data(o, rank, p, 0, o->block));
    count_from(o->comm, rank, o->block);
    return HBM_OK;
}

/* o->step is the part to take blocks from, o->peer the next of its members. */
static int fetch(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    const hbm_parts *p = &c->groups.grid;
    int part = p->of[c->rank], number = p->number[c->rank], m = part_size(p, part);
    for (; o->step < p->count; o->step++, o->peer = 0)
        for (; o->peer < part_size(p, o->step); o->peer++) {
            int rank = part_member(p, o->step, o->peer);
            if (rank == c->rank || (o->step != part && o->peer % m != number))
                continue;
            int status = copy_post(o, rank);
            if (status)
                return status;
        }
    o->step = o->peer = 0;
    return HBM_OK;
}

/* Copies the blocks that a member fetches, in the same order on all ranks. */
static void each_fetched(hbm_operation *o, int number, const unsigned char *from, unsigned char *to)
{
    const hbm_parts *p = &o->comm->groups.grid;
    int part = p->of[o->comm->rank], m = part_size(p, part);
    for (int other = 0; other < p->count; other++)
        for (int i = number; other != part && i < part_size(p, other); i += m) {
            int rank = part_member(p, other, i);
            if (from) {
                put(o, rank, from);
                from += o->block;
            } else if (o->block) {
                memcpy(to, (char *)o->call.recv + (uint64_t)rank * o->block, o->block);
                to += o->block;
            }
        }
}

static void pass_on(hbm_operation *o)
{
    const hbm_parts *p = &o->comm->groups.grid;
    int rank = o->comm->rank;
    uint64_t bytes = (uint64_t)share_of(p, p->of[rank], p->number[rank]) * o->block;
    each_fetched(o, p->number[rank], NULL, hbm_slot_room(o, FETCHED, own_room(o), bytes));
    hbm_record(o, FETCHED, IN_SLOT);
}

static int copy_passed(hbm_operation *o)
{
    const hbm_comm *c = o->comm;
    const hbm_parts *p = &c->groups.grid;
    int part = p->of[c->rank];
    for (; o->peer < part_size(p, part); o->peer++) {
        int mate = part_member(p, part, o->peer);
        uint64_t bytes = (uint64_t)share_of(p, part, o->peer) * o->block;
        const post *posted;
        if (mate == c->rank || !bytes)
            continue;
        int status = hbm_find_post(o, mate, FETCHED, &posted);
        if (status)
            return status;
        each_fetched(o, o->peer, hbm_post_data(o, mate, posted, own_room(o), bytes), NULL);
        count_data(o->comm, mate, bytes);
    }
    return HBM_OK;
}

int hbm_allgather_grid(hbm_operation *o)
{
    int status;
    switch (o->stage) {
    case BEGINNING:
        status = hbm_begin_call(o, READ_BY_GRID);
        if (status)
            return status;
        hbm_post(o, (const void *)o->call.send, o->block, IN_SLOT);
        put(o, o->comm->rank, (const void *)o->call.send);
        o->stage = FETCHING;
        /* fall through */
    case FETCHING:
        status = fetch(o);
        if (status)
            return status;
        pass_on(o);
        o->stage = PASSING;
        /* fall through */
    default:
        return copy_passed(o);
    }
}
