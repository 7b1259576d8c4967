/* The state of one rank in a communicator of several hosts.

   Ranks of a host that talk to other hosts are its leaders. Leader i of each host is in lane i: it
   exchanges messages with the other leaders of its lane. In a call with a root, the root leads its
   host, in lane 0.

   A message goes in slices. Each slice has three parts: calls among the ranks of this host, a
   flight between hosts, and more calls among the ranks of this host. */
#ifndef HBMCOMM_STATE_H
#define HBMCOMM_STATE_H

#include "comm/comm.h"
#include "hosts/steps.h"

/* Slices on their way between hosts at a time. More of them would share the links, be there
   together at the end, and only then be shared inside each host. A slice has a tag of its own,
   because flights may begin their steps in different orders on two hosts. */
#define AT_ONCE HBM_TAGS
#define RECORDED 1024 /* calls: a root can be that far ahead of ranks that wait in another one */

typedef struct {
    char *at;
    uint64_t bytes;
} hbm_room; /* memory that grows and is used again */

/* Messages between hosts that follow each other. */
typedef struct {
    /* set by who begins it */
    uint64_t slice;       /* its number */
    hbm_schedule steps;   /* HBM_AUTO: no steps, only the messages that were added */
    int lane, root;       /* lane -1: the steps name ranks, not hosts */
    char *at;             /* entry 0: what is sent, and where entries are received */
    const char *input;    /* this host's own entries, which are not at `at` yet; NULL: they are */
    char *kept;           /* where received entries are copied to after that; NULL: nowhere */
    uint64_t entry;
    int in_turn;          /* it begins when the flight before is over */
    /* its state */
    int is_over, step, joined; /* the current step, and how many have begun with it; 0: none has */
    int is_answering, has_received;
    int pending;          /* requests that are not complete */
    hbm_room held;        /* entries that are reduced when all have come */
    hbm_room result;      /* for who begins it */
} hbm_flight;

typedef struct hbm_hosts hbm_hosts;

/* The parts of an operation. HBM_PENDING: a call inside this host was started, which must be
   complete first; `turn` counts the calls of the function in one slice. Else the status. NULL:
   nothing to do. */
typedef struct {
    int kind; /* how it goes in slices: SPLIT, WHOLE or ONE */
    int (*before)(hbm_hosts *h, int turn);
    int (*fly)(hbm_hosts *h);
    int (*after)(hbm_hosts *h, int turn);
} hbm_spread;

struct hbm_hosts {
    hbm_comm *all, *inside;
    hbm_wire wire;
    int hosts, host;      /* how many there are; this one */
    int rank, ranks, index; /* in all; how many there are; this rank's number on its host */
    int leaders, algorithm, news;
    uint64_t longest;
    int *host_of, *index_of;     /* of each rank */
    int *first, *members, *leading; /* ranks of host h: from first[h] to first[h + 1] */
    const void **in;
    /* the call */
    const hbm_operation *o;
    const hbm_spread *spread;
    uint64_t entry, count, slices; /* bytes of an entry; entries; slices of these */
    int lane, root;       /* this rank's lane, or -1; the root that leads its host, or -1 */
    int between;          /* the algorithm */
    char *at;             /* where a leader has all entries */
    uint64_t begun, ended; /* slices */
    uint64_t slice;       /* that of the current part */
    int part, turn;
    hbm_operation sub;    /* the call inside this host */
    int is_inside;        /* it is not complete */
    hbm_part *sent_parts, *received_parts; /* of the ranks of this host */
    hbm_part *packs;      /* by host: where its blocks are, as addresses */
    int *is_packed;
    hbm_range *pieces;    /* by host */
    hbm_room own, staged, packed, lengths;
    /* between hosts */
    hbm_flight flights[AT_ONCE];
    uint64_t *requests;
    unsigned char *flight_of; /* of each request */
    int request_count, request_room;
    int moved;            /* something has, since it was cleared */
    _Atomic int lost;
    /* what other threads read */
    _Atomic uint64_t count_begun, count_finished, moved_at;
    past_call records[RECORDED];
};

int hbm_leader_of(const hbm_hosts *h, int host, int lane, int root);
void hbm_place_ranks(hbm_hosts *h, const hbm_hosts_setup *setup);
char *hbm_take(hbm_room *room, uint64_t bytes); /* NULL: no memory */

static inline int is_here(const hbm_hosts *h, int rank) { return h->host_of[rank] == h->host; }
static inline int ranks_on(const hbm_hosts *h, int host)
{
    return h->first[host + 1] - h->first[host];
}


/* Starts a call of the core among the ranks of this host: HBM_PENDING, or the status of a failure.
   Its parts stay until it is complete. */
int hbm_start_inside(hbm_hosts *h, const hbm_call *call);

#endif
