/* Groups of ranks, on described and on random machines: they are complete, have few children and
   are equal on all ranks, and every rank's exchange and trees match those of the others. */
#include "core_test.h"

#define FAN_IN 8

void describe(const described *m, int size, hbm_peer *peers)
{
    for (int r = 0; r < size; r++) {
        spot at = m->machine(r);
        peers[r] = (hbm_peer){.package = at.package, .node = at.node, .cache = at.cache};
    }
}

static int depth_of(const hbm_group *at)
{
    int deepest = at->depth;
    for (int i = 0; i < at->child_count; i++) {
        int depth = depth_of(&at->children[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

static void check_group(const hbm_groups *g, const hbm_group *at, int fan_in)
{
    int next = at->first;
    CHECK(at->child_count <= fan_in, "a group has %d children", at->child_count);
    CHECK(at->child_count != 1, "a group has one child");
    CHECK(at->count > 1 || !at->child_count, "a rank has children");
    for (int i = 0; i < at->child_count; i++) {
        const hbm_group *child = &at->children[i];
        CHECK(child->parent == at && child->depth == at->depth + 1, "a child of another");
        CHECK(child->first == next, "a gap between children");
        next += child->count;
        check_group(g, child, fan_in);
    }
    CHECK(!at->child_count || next == at->first + at->count, "children are missing");
}

/* No group cuts a node: it is inside one node, or contains each of its nodes completely. */
static void check_nodes(const hbm_groups *g, const hbm_group *at)
{
    int first = g->order[at->first], nodes = 0, whole = 1;
    for (int n = 0; n < g->nodes.count; n++) {
        int in = 0;
        for (int i = 0; i < at->count; i++)
            in += g->nodes.of[g->order[at->first + i]] == n;
        nodes += in > 0;
        whole &= !in || in == part_size(&g->nodes, n);
    }
    CHECK(nodes == 1 || whole, "a group around rank %d cuts a node", first);
    for (int i = 0; i < at->child_count; i++)
        check_nodes(g, &at->children[i]);
}

/* Each rank that reads a record of another is in the other's list of readers. */
static void check_exchange(const hbm_groups *all, int size)
{
    for (int r = 0; r < size; r++)
        for (int i = 0; i < all[r].step_count; i++) {
            const hbm_exchange_step *s = &all[r].steps[i];
            CHECK(s->mate_count + 1 == s->group->child_count, "a sibling is not read");
            for (int k = 0; k < s->mate_count; k++) {
                const hbm_groups *mate = &all[s->mates[k]];
                int matches = 0;
                for (int j = 0; j < mate->step_count; j++)
                    for (int n = 0; n < mate->steps[j].reader_count; n++)
                        matches += mate->steps[j].readers[n] == r
                                   && mate->steps[j].own_record == s->mate_records[k];
                CHECK(matches == 1, "rank %d reads record %d of rank %d unknown to it", r,
                      s->mate_records[k], s->mates[k]);
            }
        }
}

static void check_tree(hbm_groups *all, int size, int root)
{
    int edges = 0;
    for (int r = 0; r < size; r++) {
        const hbm_tree *t = hbm_tree_of(&all[r], root);
        CHECK((t->parent < 0) == (r == root), "rank %d has parent %d under root %d", r, t->parent,
              root);
        edges += t->child_count;
        for (int i = 0; i < t->child_count; i++)
            CHECK(hbm_tree_of(&all[t->children[i]], root)->parent == r, "a child of another");
    }
    CHECK(edges == size - 1, "%d edges in a tree of %d ranks", edges, size);
}

static void check(const hbm_peer *peers, int size, int fan_in, int most_levels)
{
    static hbm_groups all[MOST_RANKS];
    for (int r = 0; r < size; r++) {
        CHECK(hbm_group_ranks(&all[r], r, size, peers, fan_in), "no memory");
        CHECK(all[r].levels == depth_of(all[r].groups) && all[r].levels <= most_levels,
              "%d levels", all[r].levels);
        CHECK(!memcmp(all[r].order, all[0].order, (size_t)size * sizeof(int)), "orders differ");
    }
    check_group(&all[0], all[0].groups, fan_in);
    check_nodes(&all[0], all[0].groups);
    check_exchange(all, size);
    check_tree(all, size, 0);
    check_tree(all, size, size / 2);
    check_tree(all, size, size - 1);
    for (int r = 0; r < size; r++)
        hbm_ungroup(&all[r]);
}

void test_groups(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    hbm_peer peers[MOST_RANKS] = {0};
    dice d = {seed};
    for (int m = 0; m < machine_count; m++) {
        describe(&machines[m], machines[m].cores, peers);
        check(peers, machines[m].cores, FAN_IN, 4);
    }
    do {
        int size = 1 + (int)roll(&d, 24);
        for (int r = 0; r < size; r++)
            peers[r] = (hbm_peer){.package = (int)roll(&d, 2), .node = (int)roll(&d, 3),
                                  .cache = (int)roll(&d, 4)};
        check(peers, size, 3 + (int)roll(&d, 6), MOST_LEVELS);
    } while (seconds_now() < end);
}

void test_many_ranks(uint64_t seed, double seconds)
{
    double end = seconds_now() + seconds;
    for (uint64_t round = 0; round < 1 || seconds_now() < end; round++) {
        uint64_t drawn_from = mixed(seed + round);
        const described *m = &machines[drawn_from % (uint64_t)machine_count];
        int sizes[] = {16, 64, m->cores};
        group g = {.size = sizes[drawn_from >> 8 & 1 ? 2 : drawn_from >> 9 & 1],
                   .machine = m->machine, .crowded = 1, .cache_bytes = 32 << 20,
                   .reads_private = drawn_from >> 10 & 1};
        random_sequence(g, drawn_from);
    }
}
