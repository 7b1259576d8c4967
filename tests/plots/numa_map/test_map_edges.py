"""Every line of a map is there, ends at its box, and hides behind no other."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from plots.numa_map.map_edges import Point, ways
from plots.numa_map.map_layout import Box, Plan

Planned = Callable[..., Plan]
MACHINES = [
    *(("plain", 2), ("knl-snc4-flat", 8), ("xeon-max-flat-snc4", 16), ("sixty-four", 64)),
    *(("caches", 16), ("caches", 32), ("caches", 64), ("two-rows-hbm", 20), ("mixed-rows", 12)),
    ("four-rows", 32),
]


@pytest.fixture(params=MACHINES, ids=lambda each: f"{each[0]}-{each[1]}")
def plan(request: pytest.FixtureRequest, planned: Planned) -> Plan:
    return planned(*request.param)


def along(way: list[Point]) -> Iterator[Point]:
    """Points close to each other on the curves of a line."""
    for first in range(0, len(way) - 1, 3):
        (x0, y0), (x1, y1), (x2, y2), (x3, y3) = way[first : first + 4]
        for step in range(65):
            t = step / 64
            a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
            yield a * x0 + b * x1 + c * x2 + d * x3, a * y0 + b * y1 + c * y2 + d * y3


def within(box: Box, point: Point) -> bool:
    x, y = point
    near = 1e-6
    return box.left + near < x < box.right - near and box.bottom + near < y < box.top - near


def test_from_every_mark_a_line_leads_to_every_box(plan: Plan) -> None:
    for node, box in plan.memory.items():
        found = ways(plan, node, plan.marks)
        assert found.keys() == set(plan.marks)
        for mark, way in found.items():
            assert way[0] == (mark.x, mark.y)
            assert len(way) % 3 == 1
            x, y = way[-1]
            assert box.left < x < box.right
            edges = (box.bottom, box.top, plan.homes.get(node, box).top)
            assert min(abs(y - edge) for edge in edges) < 1e-9


def test_no_line_covers_a_box_or_passes_behind_one(plan: Plan) -> None:
    for node in plan.memory:
        for mark, way in ways(plan, node, plan.marks).items():
            boxes = [box for other, box in plan.homes.items() if other != mark.node]
            boxes += plan.memory.values()
            for point in along(way):
                assert not any(within(box, point) for box in boxes), (mark.ranks, node, point)
                assert 0 <= point[0] <= plan.width and 0 <= point[1] <= plan.height


def test_ends_of_one_box_stand_apart(plan: Plan) -> None:
    for node in plan.memory:
        marks = [mark for mark in plan.marks if mark.node != node]
        ends = sorted((y, x) for *_, (x, y) in ways(plan, node, marks).values())
        for (y, x), (other_y, other_x) in pairwise(ends):
            assert y != other_y or other_x - x > 1e-3


def test_ranks_of_a_tile_run_side_by_side_to_another_row(planned: Planned) -> None:
    plan = planned("caches", 32)
    pair = [mark for mark in plan.marks if mark.node == 3]
    passing = [
        {round(x, 6) for x, y in along(way) if abs(y - plan.homes[3].bottom) < 1e-6}
        for way in ways(plan, 11, pair).values()
    ]
    assert [len(each) for each in passing] == [1, 1]
    assert passing[0] != passing[1]


def test_arcs_within_a_row_nest(planned: Planned) -> None:
    plan = planned("caches", 16)
    for node, sign in ((0, 1), (7, -1)):
        marks = [mark for mark in plan.marks if mark.node < 8 and mark.node != node]
        nearest_first = sorted(ways(plan, node, marks).items(), key=lambda each: sign * each[0].x)
        ends = [sign * way[-1][0] for _, way in nearest_first]
        heights = [max(y for _, y in along(way)) for _, way in nearest_first]
        assert ends == sorted(ends, reverse=True)
        assert heights == sorted(heights)
