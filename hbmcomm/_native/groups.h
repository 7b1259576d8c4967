/* Ranks in groups that follow the machine: packages, NUMA nodes, caches, and parts of those of at
   most `fan_in`. Ranks talk along this tree, so that no rank reads the words of all others. */
#ifndef HBMCOMM_GROUPS_H
#define HBMCOMM_GROUPS_H

#include "layout.h"

#define MOST_LEVELS 7

/* Ranks order[first] to order[first + count - 1]; its children have these ranks between them. */
typedef struct hbm_group {
    const struct hbm_group *parent, *children;
    int depth, first, count, child_count;
} hbm_group;

/* One step of an exchange among all ranks, for one rank: it reads what one rank of each sibling
   group wrote. Sibling groups are in the order of the ranks; this rank's own comes at `position`. */
typedef struct {
    const hbm_group *group; /* whose children meet */
    int mate_count, position;
    int *mates, *mate_records; /* the ranks that this one reads, and in which record of theirs */
    int own_record;            /* where others read what this rank contributes */
    int reader_count, *readers;
} hbm_exchange_step;

/* The ranks next to this one in the tree that has `root` at its top. A rank leads some groups, the
   smallest first; its children are the leaders of the other children of these. */
typedef struct {
    int root, parent, child_count;
    int *children;
} hbm_tree;

/* The ranks dealt out over parts of the machine: NUMA nodes, say. */
typedef struct {
    int count;
    int *of, *number;     /* the part of each rank, and its number among the ranks of that */
    int *first, *members; /* members of part p: members[first[p]] to members[first[p + 1] - 1] */
} hbm_parts;

typedef struct {
    int rank, size;
    int *order, *place;    /* place[order[i]] == i */
    hbm_group *groups;     /* groups[0] has all ranks */
    const hbm_group *leaf; /* of this rank alone */
    int levels;            /* of groups, on the longest way: the same on all ranks */
    int step_count;        /* of this rank */
    hbm_exchange_step steps[MOST_LEVELS];
    hbm_tree tree;
    hbm_parts nodes;       /* by NUMA nodes; on one node, by its last-level caches where it has many */
    hbm_parts grid;        /* the same where there are several, else the largest groups */
    int *memory;
} hbm_groups;

int hbm_group_ranks(hbm_groups *g, int rank, int size, const hbm_peer *peers, int fan_in);
void hbm_ungroup(hbm_groups *g);

/* The rank that leads a group in the tree with `root` at its top. */
int hbm_leader(const hbm_groups *g, const hbm_group *group, int root);
const hbm_tree *hbm_tree_of(hbm_groups *g, int root);

static inline int part_size(const hbm_parts *p, int part) { return p->first[part + 1] - p->first[part]; }

static inline int part_member(const hbm_parts *p, int part, int number)
{
    return p->members[p->first[part] + number];
}

#endif
