"""The ways of lines on a machine's map, from ranks to the boxes of memory that hold their pages.

A line covers no box and passes behind none: from row to row it goes through the gaps between tiles.
Pure, in inches; knows nothing of colours and shares.
"""

from collections.abc import Sequence
from itertools import pairwise

from plots.numa_map.map_layout import Box, Mark, Plan

Point = tuple[float, float]


def ways(plan: Plan, node: int, marks: Sequence[Mark]) -> dict[Mark, list[Point]]:
    """The line from each of these marks to a node's memory.

    Ends lie side by side along the box, in an order in which few lines cross. Those from the same
    row to a node with CPUs are arcs, and nest: the farther the mark, the farther its end.

    Returns:
        {mark: where its line begins, then of each cubic curve two control points and its end}.
    """
    box, row = plan.memory[node], plan.rows[node]
    ordered = sorted(marks, key=lambda mark: mark.x)
    own = [mark for mark in ordered if mark.node == node]
    level = [mark for mark in ordered if mark.node != node and plan.rows[mark.node] == row]
    above = [mark for mark in ordered if plan.rows[mark.node] > row]
    below = [mark for mark in ordered if plan.rows[mark.node] < row]
    found = {mark: _curves(plan, [(mark.x, mark.y), (mark.x, box.top)]) for mark in own}
    if node in plan.homes:
        left = [mark for mark in level if mark.x < (box.left + box.right) / 2]
        right = level[len(left) :]
        top, bottom = [*left[::-1], *above, *right[::-1]], below
    else:
        top, bottom = above, [mark for mark in ordered if mark not in above]
    for side in (top, bottom):
        for place, mark in enumerate(side):
            along = (place + 1) / (len(side) + 1)
            found[mark] = _curves(plan, _turns(plan, mark, node, along))
    return found


def _turns(plan: Plan, mark: Mark, node: int, along: float) -> list[Point]:
    """Where a line to another node begins, goes upright, and ends, `along` the width of a box."""
    box = plan.homes.get(node, plan.memory[node])
    home, here, there = plan.homes[mark.node], plan.rows[mark.node], plan.rows[node]
    x, top = _within(box, along), (mark.x, home.top)
    found = [(mark.x, mark.y), top]
    if here == there:
        return [*found, (x, home.top if node in plan.homes else box.bottom)]
    back, out = plan.backs[mark.node], plan.lanes[mark.node]
    lane = _within(out, _aside(plan, mark))
    if here > there:
        found += [(lane, home.top), (lane, out.bottom)]
    elif back.top > home.top:
        found += [(lane, home.top + plan.band), (lane, out.top)]
    else:
        found += [(mark.x, out.top)]
    for row in range(here - 1, there, -1) if here > there else range(here + 1, there):
        gap = _nearest(plan, row, found[-1][0])
        ends = (gap.top, gap.bottom) if here > there else (gap.bottom, gap.top)
        found += [(_within(gap, _aside(plan, mark)), y) for y in ends]
    return [*found, *_arrival(plan, node, along, here > there)]


def _arrival(plan: Plan, node: int, along: float, from_above: bool) -> list[Point]:
    """From the edge of a node's row to its box: straight, or round what stands before it."""
    tile = _tile(plan, node)
    home, back, lane = plan.homes[tile], plan.backs[tile], plan.lanes[tile]
    box = plan.memory[node]
    x, aside = _within(box, along), _within(lane, along)
    if from_above and node != tile:
        return [(x, lane.top), (x, box.top)]
    if from_above and back.top > home.top:
        return [(aside, lane.top), (aside, home.top + plan.band), (x, home.top)]
    if from_above:
        return [(x, lane.top), (x, home.top)]
    if node != tile:
        return [(aside, lane.bottom), (aside, home.top), (x, box.bottom)]
    return [(x, box.bottom)]


def _tile(plan: Plan, node: int) -> int:
    """The node with CPUs whose tile a node is of."""
    box = plan.memory[node]
    return next(
        number
        for number, back in plan.backs.items()
        if plan.rows[number] == plan.rows[node] and back.left <= box.left < back.right
    )


def _nearest(plan: Plan, row: int, x: float) -> Box:
    lanes = [lane for node, lane in plan.lanes.items() if plan.rows[node] == row]
    return min(lanes, key=lambda lane: abs(_within(lane, 0.5) - x))


def _aside(plan: Plan, mark: Mark) -> float:
    """Where along a gap the line of a rank runs: beside those of the others of its tile."""
    tile = [other for other in plan.marks if other.node == mark.node]
    nearest_first = sorted(tile, key=lambda other: (-other.x, other.y))
    return (nearest_first.index(mark) + 1) / (len(tile) + 1)


def _within(box: Box, along: float) -> float:
    return box.left + box.width * along


def _curves(plan: Plan, turns: Sequence[Point]) -> list[Point]:
    """Upright at every turn; two turns of the same height are joined by an arc above them."""
    found = [turns[0]]
    for (x, y), (to_x, to_y) in pairwise(turns):
        if (x, y) == (to_x, to_y):
            continue
        middle = (y + to_y) / 2
        if abs(y - to_y) < 1e-9:
            rise = plan.band * (0.3 + 0.6 * abs(to_x - x) / plan.width)
            middle = y + rise * 4 / 3  # a cubic rises to three quarters of its control points
        found += [(x, middle), (to_x, middle), (to_x, to_y)]
    return found
