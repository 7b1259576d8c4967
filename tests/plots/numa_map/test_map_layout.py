"""Which box stands beside which, and that nothing lies on anything else."""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from plots.analysis.page_placement import Node, owners, places
from plots.numa_map.map_layout import MARK, Box, Plan, Tile, plan, tiles

Launched = Callable[..., dict[str, Any]]
Planned = Callable[..., Plan]
WIDTH = 3.24


def nodes(launched: Launched, machine: str) -> tuple[Node, ...]:
    (place,) = places([launched(machine, ranks=1)])
    return place.nodes


def node(
    number: int, distances: dict[int, int], cpus: tuple[int, ...] = (), near: tuple[int, ...] = ()
) -> Node:
    return Node(number, cpus, 2**30, tuple(distances.items()), near, not cpus)


def test_hbm_stands_beside_the_node_that_it_is_nearest_to(launched: Launched) -> None:
    assert tiles(nodes(launched, "knl-snc4-flat")) == [
        Tile(number, (number + 4,), 0) for number in range(4)
    ]


def test_nodes_of_a_socket_stand_together(launched: Launched) -> None:
    found = tiles(nodes(launched, "xeon-max-flat-snc4"))
    assert [(tile.node, tile.near, tile.group) for tile in found] == [
        (number, (number + 8,), number // 4) for number in range(8)
    ]


def test_hmats_word_counts_more_than_distances() -> None:
    homes = [node(0, {0: 10, 1: 20}, (0,)), node(1, {0: 20, 1: 10}, (1,))]
    assert owners(node(2, {0: 11, 1: 30}, near=(1,)), homes) == [1]
    assert owners(node(2, {0: 11, 1: 30}), homes) == [0]


def test_a_node_as_near_to_several_stands_beside_the_first() -> None:
    homes = [node(0, {0: 10, 1: 20}, (0,)), node(1, {0: 20, 1: 10}, (1,))]
    shared = node(2, {0: 30, 1: 30})
    assert owners(shared, homes) == [0, 1]
    assert tiles([*homes, shared]) == [Tile(0, (2,), 0), Tile(1, (), 0)]


def test_two_nodes_may_stand_beside_one() -> None:
    home = node(0, {0: 10}, (0,))
    found = plan([home, node(1, {0: 14}), node(2, {0: 30})], {0: [0]}, WIDTH, band=0.3)
    left, right = found.memory[1], found.memory[2]
    assert left.bottom == right.bottom and left.right < right.left
    assert found.homes[0].left == left.left
    assert found.homes[0].right == pytest.approx(right.right)


MACHINES = (
    *("plain", "knl-snc4-flat", "xeon-max-flat-snc4", "sixty-four", "caches"),
    *("two-rows-hbm", "mixed-rows", "four-rows"),
)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("ranks", [1, 2, 16, 64])
def test_boxes_lie_within_the_plan_and_not_on_each_other(
    planned: Planned, machine: str, ranks: int
) -> None:
    found = planned(machine, ranks)
    boxes = [*found.memory.values()]
    for box in boxes:
        assert 0 <= box.left < box.right <= WIDTH + 1e-9
        assert 0 <= box.bottom < box.top <= found.height + 1e-9
    for one, other in combinations(boxes, 2):
        assert not _overlap(one, other)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("ranks", [1, 8, 16, 64])
def test_every_rank_has_a_mark_in_its_node_above_the_memory(
    planned: Planned, machine: str, ranks: int
) -> None:
    found = planned(machine, ranks)
    assert sorted(rank for mark in found.marks for rank in mark.ranks) == list(range(ranks))
    for mark in found.marks:
        home, memory = found.homes[mark.node], found.memory[mark.node]
        assert home.left <= mark.x - MARK / 2 and mark.x + MARK / 2 <= home.right
        assert memory.top <= mark.y - MARK / 2 and mark.y + MARK / 2 <= home.top
    for one, other in combinations(found.marks, 2):
        assert max(abs(one.x - other.x), abs(one.y - other.y)) >= MARK


def test_ranks_have_a_mark_together_where_there_is_no_room_for_each(planned: Planned) -> None:
    (mark,) = planned("sixty-four", 64).marks
    assert mark.ranks == tuple(range(64))


def test_many_nodes_stand_in_rows(planned: Planned) -> None:
    found = planned("caches", 32)
    feet = [found.homes[number].bottom for number in range(16)]
    assert feet[:8] == [feet[0]] * 8 and feet[8:] == [0.0] * 8
    assert feet[0] > found.homes[8].top


@pytest.mark.parametrize("machine", MACHINES)
def test_beside_each_tile_of_several_rows_is_a_gap_as_high_as_its_row(
    planned: Planned, machine: str
) -> None:
    found = planned(machine, 2)
    several = len(set(found.rows.values())) > 1
    boxes = [*found.memory.items(), *found.homes.items()]
    for number, lane in found.lanes.items():
        row = [box for other, box in boxes if found.rows[other] == found.rows[number]]
        assert lane.bottom == min(box.bottom for box in row)
        assert lane.top == max(box.top for box in row)
        assert lane.right <= WIDTH + 1e-9
        assert lane.width > 0.05 or not several
        assert not any(_overlap(lane, box) for _, box in boxes)


def test_numbers_stand_in_two_lines_only_where_one_is_too_short(planned: Planned) -> None:
    assert not planned("xeon-max-flat-snc4", 2, letters=4).stacked
    assert planned("xeon-max-flat-snc4", 2, letters=5).stacked
    assert not planned("knl-snc4-flat", 2, letters=5).stacked


def test_a_far_node_is_no_reason_for_a_socket_of_its_own() -> None:
    one = node(0, {0: 10}, (0,))
    assert [tile.group for tile in tiles([one])] == [0]
    pair = [replace(one, distances=((0, 10), (1, 20))), node(1, {0: 20, 1: 10}, (1,))]
    assert [tile.group for tile in tiles(pair)] == [0, 0]


def _overlap(one: Box, other: Box) -> bool:
    across = min(one.right, other.right) - max(one.left, other.left)
    up = min(one.top, other.top) - max(one.bottom, other.bottom)
    return across > 1e-9 and up > 1e-9
