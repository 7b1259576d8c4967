/* Builds the groups of groups.h, and each rank's view of them: its exchanges, and its trees.

   The ranks of a group differ in the first of these properties in which any differ: package, node,
   cache. Each value is a child group. Where there are more than `fan_in`, or where no property
   differs, neighbours are combined evenly, so that no group has more than `fan_in` children.

   Every rank builds the same tree from the same data, without communication, so it needs no
   ordering. */
#include "comm/groups.h"

#include <stdlib.h>
#include <string.h>

#define LEAST_IN_PART 4 /* average number of ranks for caches to count as nodes */

typedef struct {
    hbm_groups *g;
    const hbm_peer *peers;
    int fan_in, used, too_deep;
} builder;

static int place_of(const hbm_peer *p, int property)
{
    return property == 0 ? p->package : property == 1 ? p->node : p->cache;
}

static int same_place(const builder *b, int one, int other, int property)
{
    /* another package may use the same numbers of nodes and caches */
    for (int p = 0; p <= property; p++)
        if (place_of(&b->peers[one], p) != place_of(&b->peers[other], p))
            return 0;
    return 1;
}

/* Sorts ranks by place; places are in the order of their first ranks. Returns the number of places,
   and sets `starts` to where each begins. */
static int sort_by(const builder *b, int *order, int count, int property, int *starts)
{
    int places = 0;
    for (int from = 0, end; from < count; from = end, places++) {
        starts[places] = from;
        end = from + 1;
        for (int i = end; i < count; i++) {
            if (!same_place(b, order[from], order[i], property))
                continue;
            int rank = order[i];
            memmove(&order[end + 1], &order[end], (size_t)(i - end) * sizeof *order);
            order[end++] = rank;
        }
    }
    return places;
}

/* The fewest parts, at most `fan_in`, that need no more levels than `fan_in` parts would. */
static int even_parts(int count, int fan_in)
{
    int levels = 1, parts = 1;
    for (long reach = fan_in; reach < count; reach *= fan_in)
        levels++;
    for (long reach = 0; reach < count;) {
        parts++;
        reach = 1;
        for (int l = 0; l < levels; l++)
            reach *= parts;
    }
    return parts;
}

static hbm_group *new_groups(builder *b, const hbm_group *parent, int count)
{
    hbm_group *made = &b->g->groups[b->used];
    b->used += count;
    for (int i = 0; i < count; i++)
        made[i] = (hbm_group){.parent = parent, .depth = parent ? parent->depth + 1 : 0};
    if (made->depth > b->g->levels)
        b->g->levels = made->depth;
    return made;
}

static void divide(builder *b, hbm_group *group)
{
    int n = group->count, *order = b->g->order + group->first, places = 1;
    if (n == 1)
        return;
    if (group->depth == MOST_LEVELS) {
        b->too_deep = 1;
        return;
    }
    int *starts = b->g->position_of + b->g->size + group->first;
    for (int property = 0; property < 3 && places == 1; property++)
        places = sort_by(b, order, n, property, starts);
    int distinct = places > 1, parts = distinct ? places : n;
    int children = parts <= b->fan_in ? parts : even_parts(parts, b->fan_in);
    hbm_group *made = new_groups(b, group, children);
    for (int i = 0; i < children; i++) {
        int from = (int)((long)parts * i / children), to = (int)((long)parts * (i + 1) / children);
        int first = distinct ? starts[from] : from;
        int end = distinct ? (to < places ? starts[to] : n) : to;
        made[i].first = group->first + first;
        made[i].count = end - first;
    }
    group->children = made;
    group->child_count = children;
    for (int i = 0; i < children; i++)
        divide(b, &made[i]);
}

/* The record with the contribution of a group. */
static int record_of(const hbm_group *group) { return group->count == 1 ? 0 : group->depth; }

static void fill_step(hbm_groups *g, hbm_exchange_step *s, const hbm_group *own, int **memory)
{
    const hbm_group *group = own->parent;
    int number = g->position_of[g->rank] - own->first;
    *s = (hbm_exchange_step){.group = group, .own_record = record_of(own)};
    s->mates = *memory;
    s->mate_records = s->mates + group->child_count;
    s->readers = s->mate_records + group->child_count;
    for (int i = 0; i < group->child_count; i++) {
        const hbm_group *other = &group->children[i];
        if (other == own) {
            s->position = s->mate_count;
            continue;
        }
        s->mates[s->mate_count] = g->order[other->first + number % other->count];
        s->mate_records[s->mate_count++] = record_of(other);
        for (int k = number; k < other->count; k += own->count)
            s->readers[s->reader_count++] = g->order[other->first + k];
    }
    *memory = s->readers + s->reader_count;
}

/* Fills in all other fields from the part of each rank, `p->of`. */
static void fill_parts(hbm_parts *p, int size)
{
    int used = 0;
    for (int part = 0; part < p->count; part++) {
        p->first[part] = used;
        for (int r = 0; r < size; r++)
            if (p->of[r] == part) {
                p->number[r] = used - p->first[part];
                p->members[used++] = r;
            }
    }
    p->first[p->count] = used;
}

static int *place_parts(hbm_parts *p, int size, int *memory)
{
    p->of = memory;
    p->number = p->of + size;
    p->members = p->number + size;
    p->first = p->members + size;
    return p->first + size + 1;
}

static int share_node(const hbm_peer *a, const hbm_peer *b)
{
    return a->package == b->package && a->node == b->node;
}

static int share_cache(const hbm_peer *a, const hbm_peer *b)
{
    return share_node(a, b) && a->cache == b->cache;
}

static void part_by(hbm_groups *g, const hbm_peer *peers,
                    int (*share)(const hbm_peer *, const hbm_peer *))
{
    hbm_parts *p = &g->nodes;
    p->count = 0;
    for (int r = 0; r < g->size; r++) {
        int same = 0;
        while (!share(&peers[same], &peers[r]))
            same++;
        p->of[r] = same == r ? p->count++ : p->of[same];
    }
}

/* A node with many last-level caches is like many nodes: the links between caches are the
   bottleneck. */
static void find_nodes(hbm_groups *g, const hbm_peer *peers)
{
    part_by(g, peers, share_node);
    if (g->nodes.count == 1) {
        part_by(g, peers, share_cache);
        if (g->nodes.count * LEAST_IN_PART > g->size)
            part_by(g, peers, share_node);
    }
    fill_parts(&g->nodes, g->size);
}

static void find_grid(hbm_groups *g)
{
    hbm_parts *p = &g->grid;
    if (g->nodes.count > 1) {
        *p = g->nodes;
        return;
    }
    p->count = g->groups->child_count ? g->groups->child_count : 1;
    for (int i = 0; i < g->groups->child_count; i++)
        for (int k = 0; k < g->groups->children[i].count; k++)
            p->of[g->order[g->groups->children[i].first + k]] = i;
    fill_parts(p, g->size);
}

static int build(hbm_groups *g, const hbm_peer *peers, int fan_in)
{
    for (int r = 0; r < g->size; r++)
        g->order[r] = r;
    builder b = {g, peers, fan_in, 0, 0};
    hbm_group *all = new_groups(&b, NULL, 1);
    all->count = g->size;
    divide(&b, all);
    for (int i = 0; i < g->size; i++)
        g->position_of[g->order[i]] = i;
    return !b.too_deep;
}

int hbm_group_ranks(hbm_groups *g, int rank, int size, const hbm_peer *peers, int fan_in)
{
    size_t n = (size_t)size;
    memset(g, 0, sizeof *g);
    /* order, place, scratch, children of a tree; parts; mates, records and readers of each step */
    g->memory = calloc((4 + 2 * 5 + 3 * MOST_LEVELS) * n, sizeof *g->memory);
    g->groups = calloc(2 * n, sizeof *g->groups);
    hbm_peer *alike = calloc(n, sizeof *alike);
    if (!g->memory || !g->groups || !alike) {
        free(alike);
        hbm_ungroup(g);
        return 0;
    }
    g->rank = rank;
    g->size = size;
    g->order = g->memory;
    g->position_of = g->order + n;
    g->tree.children = g->position_of + 2 * n;
    int *memory = place_parts(&g->nodes, size, g->tree.children + n);
    memory = place_parts(&g->grid, size, memory);
    if (!build(g, peers, fan_in)) { /* the machine has more levels than there are records */
        memset(g->groups, 0, 2 * n * sizeof *g->groups);
        g->levels = 0;
        build(g, alike, fan_in > 3 ? fan_in : 3);
    }
    free(alike);
    const hbm_group *own = g->groups;
    while (own->child_count)
        for (own = own->children; g->position_of[rank] >= own->first + own->count;)
            own++;
    g->leaf = own;
    for (; own->parent; own = own->parent)
        fill_step(g, &g->steps[g->step_count++], own, &memory);
    find_nodes(g, peers);
    find_grid(g);
    g->tree.root = -1;
    return 1;
}

void hbm_ungroup(hbm_groups *g)
{
    free(g->memory);
    free(g->groups);
    g->memory = NULL;
    g->groups = NULL;
}

int hbm_leader(const hbm_groups *g, const hbm_group *group, int root)
{
    int at = g->position_of[root] - group->first;
    return at >= 0 && at < group->count ? root : g->order[group->first];
}

const hbm_tree *hbm_tree_of(hbm_groups *g, int root)
{
    hbm_tree *t = &g->tree;
    if (t->root == root)
        return t;
    t->root = root;
    t->parent = -1;
    t->child_count = 0;
    for (const hbm_group *own = g->leaf; own->parent; own = own->parent) {
        int leader = hbm_leader(g, own->parent, root);
        if (leader != g->rank) {
            t->parent = leader;
            break;
        }
        for (int i = 0; i < own->parent->child_count; i++)
            if (&own->parent->children[i] != own)
                t->children[t->child_count++] = hbm_leader(g, &own->parent->children[i], root);
    }
    return t;
}
