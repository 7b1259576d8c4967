/* Groups of ranks that follow the machine: packages, NUMA nodes, caches, and parts of these of at
   most `fan_in` ranks. Ranks communicate along this tree, so that no rank reads the words of all
   others. */
#ifndef HBMCOMM_GROUPS_H
#define HBMCOMM_GROUPS_H

#include "layout.h"

#define MOST_LEVELS 7

/* Ranks order[first] to order[first + count - 1]; its children divide these ranks. */
typedef struct hbm_group {
    const struct hbm_group *parent, *children;
    int depth, first, count, child_count;
} hbm_group;

/* One step of an exchange among all ranks, for one rank: it reads from one rank of each sibling
   group. Sibling groups are in the order of the ranks; this rank's own group is at `position`. */
typedef struct {
    const hbm_group *group; /* its children exchange */
    int mate_count, position;
    int *mates, *mate_records; /* the ranks that this one reads, and which of their records */
    int own_record;            /* the record of this rank that others read */
    int reader_count, *readers;
} hbm_exchange_step;

/* The ranks next to this one in the tree that has `root` at its top. A rank leads some groups, the
   smallest first; its children are the leaders of the other children of these. */
typedef struct {
    int root, parent, child_count;
    int *children;
} hbm_tree;

/* A division of the ranks over parts of the machine, such as NUMA nodes. */
typedef struct {
    int count;
    int *of, *number;     /* the part of each rank, and its number within that part */
    int *first, *members; /* members of part p: members[first[p]] to members[first[p + 1] - 1] */
} hbm_parts;

typedef struct {
    int rank, size;
    int *order, *position_of; /* position_of[order[i]] == i */
    hbm_group *groups;     /* groups[0] has all ranks */
    const hbm_group *leaf; /* of this rank alone */
    int levels;            /* the depth of the tree: the same on all ranks */
    int step_count;        /* the steps of this rank */
    hbm_exchange_step steps[MOST_LEVELS];
    hbm_tree tree;
    hbm_parts nodes;       /* NUMA nodes; on a single one its last-level caches, if many */
    hbm_parts grid;        /* `nodes` where there are several, else the largest groups */
    int *memory;
} hbm_groups;

int hbm_group_ranks(hbm_groups *g, int rank, int size, const hbm_peer *peers, int fan_in);
void hbm_ungroup(hbm_groups *g);

/* The rank that leads a group in the tree with `root` at its top. */
int hbm_leader(const hbm_groups *g, const hbm_group *group, int root);
const hbm_tree *hbm_tree_of(hbm_groups *g, int root);

static inline int part_size(const hbm_parts *p, int part)
{
    return p->first[part + 1] - p->first[part];
}

static inline int part_member(const hbm_parts *p, int part, int number)
{
    return p->members[p->first[part] + number];
}

#endif
