"""Where the boxes of a machine's map stand, in inches: which node beside which, and where ranks go.

A node without CPUs stands above the node with CPUs that it serves best, by HMAT's word, else by
distance. Pure; knows nothing of colours and pages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from plots.analysis.page_placement import Node, owners

GAP = 0.055  # between tiles
WIDE_GAP = 0.15  # between tiles of different groups
MOST_SLOT = 1.15
WIDE = 0.72  # a box from which on a line holds its number and its bytes with their unit
STRIP = 0.17  # of a node's memory: one line
STACKED = 0.29  # the same in two lines
ABREAST = 4  # letters that a line of the smallest box holds
MARK = 0.157  # across a rank's mark
PITCH = 0.162  # from one to the next
PAD = 0.03
MOST_ROWS = 2
MOST_ABREAST = 8  # boxes side by side; further tiles stand in a row of their own
ROW_GAP = 0.16  # between rows of tiles


@dataclass(frozen=True)
class Tile:
    """A node with CPUs, and those without that stand beside it; group: of near tiles, from 0."""

    node: int
    near: tuple[int, ...]
    group: int


@dataclass(frozen=True)
class Box:
    """A node's memory on the map; inches from the lower left corner."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def width(self) -> float:
        """From the left to the right edge."""
        return self.right - self.left


@dataclass(frozen=True)
class Mark:
    """A rank, or several where there is no room for each of them; the middle of it."""

    ranks: tuple[int, ...]
    node: int
    x: float
    y: float


@dataclass(frozen=True)
class Plan:
    """A map of so many inches.

    Attributes:
        memory: the box of each node's memory, by the node's number.
        homes: a box around memory and ranks of each node with CPUs.
        rows: the row of each node's tile, from 0, the lowest.
        backs: a box behind each tile, by its node with CPUs.
        lanes: the gap to the right of each tile, as high as its row: lines from row to row pass
            there.
        wide: whether a box has room for units.
        stacked: whether a node's number and its bytes stand one below the other.
        band: inches between the nodes with CPUs and those without, for lines.
    """

    width: float
    height: float
    memory: dict[int, Box]
    homes: dict[int, Box]
    rows: dict[int, int]
    backs: dict[int, Box]
    lanes: dict[int, Box]
    marks: list[Mark]
    wide: bool
    stacked: bool
    band: float


def tiles(nodes: Sequence[Node]) -> list[Tile]:
    """One for each node with CPUs, near ones side by side.

    A node without CPUs that is as near to several stands beside the first of them.
    """
    with_cpus = [node for node in nodes if node.cpus]
    near: dict[int, list[int]] = {node.id: [] for node in with_cpus}
    for node in nodes:
        if not node.cpus and with_cpus:
            near[owners(node, with_cpus)[0]].append(node.id)
    return [
        Tile(number, tuple(near[number]), place)
        for place, group in enumerate(groups(with_cpus))
        for number in group
    ]


def groups(with_cpus: Sequence[Node]) -> list[list[int]]:
    """Nodes that are nearer to each other than to the others: the sockets, where that shows."""
    far = {node.id: dict(node.distances) for node in with_cpus}
    apart = sorted({far[a].get(b, 255) for a in far for b in far if a != b})
    if len(apart) < 2:
        return [sorted(far)]
    found: list[list[int]] = []
    for number in sorted(far):
        mine = next((g for g in found if far[number].get(g[0], 255) < apart[-1]), None)
        if mine is None:
            found.append([number])
        else:
            mine.append(number)
    return found


def slots(nodes: Sequence[Node]) -> int:
    """How many boxes stand side by side."""
    return sum(max(1, len(tile.near)) for tile in tiles(nodes))


def plan(
    nodes: Sequence[Node],
    ranks: Mapping[int, Sequence[int]],
    width: float,
    *,
    band: float,
    letters: int = 0,
    below_marks: float = 0.0,
) -> Plan:
    """Boxes and marks within so many inches.

    Args:
        ranks: by node, those whose CPU it has.
        band: inches between the nodes with CPUs and those without, for lines.
        letters: of a node's number and its bytes without their unit, at most.
        below_marks: inches below each mark, for its CPU.
    """
    stacks = rows(tiles(nodes))
    lane = GAP if len(stacks) > 1 else 0.0  # to the right of a row's last tile
    slot = min(MOST_SLOT, *(_slot(row, width - lane) for row in stacks))
    wide = slot >= WIDE
    stacked = not wide and letters > ABREAST
    every = [tile for row in stacks for tile in row]
    cells = {tile.node: _cells(ranks.get(tile.node, ()), _across(tile, slot)) for tile in every}
    strip = STACKED if stacked else STRIP
    home = strip + max(map(len, cells.values())) * (PITCH + below_marks) + 2 * PAD
    above = strip if any(tile.near for tile in every) else 0.0
    each = home + above + (band if above or len(every) > 1 else 0.0)
    height = len(stacks) * (each + ROW_GAP) - ROW_GAP
    found = Plan(width, height, {}, {}, {}, {}, {}, [], wide, stacked, band)
    for up, row in enumerate(reversed(stacks)):
        left, foot = 0.0, up * (each + ROW_GAP)
        ceiling = foot + (each if any(tile.near for tile in row) else home)
        for tile, gap in zip(row, [*_gaps(row), lane], strict=True):
            right = left + _across(tile, slot)
            top = foot + (each if tile.near else home)
            found.homes[tile.node] = Box(left, right, foot, foot + home)
            found.memory[tile.node] = Box(left, right, foot, foot + strip)
            found.rows.update(dict.fromkeys((tile.node, *tile.near), up))
            found.backs[tile.node] = Box(left, right, foot, top)
            found.lanes[tile.node] = Box(right, right + gap, foot, ceiling)
            for place, number in enumerate(tile.near):
                begin = left + place * (slot + GAP)
                found.memory[number] = Box(begin, begin + slot, top - strip, top)
            y = foot + home - PAD - PITCH / 2
            middle = (left + right) / 2
            found.marks.extend(_marks(tile.node, cells[tile.node], middle, y, below_marks))
            left = right + gap
    return found


def rows(every: Sequence[Tile]) -> list[list[Tile]]:
    """The tiles in rows of at most MOST_ABREAST boxes, and of one tile at least."""
    found: list[list[Tile]] = []
    taken = 0
    for tile in every:
        need = max(1, len(tile.near))
        if not found or taken + need > MOST_ABREAST:
            found.append([])
            taken = 0
        found[-1].append(tile)
        taken += need
    return found


def _slot(row: Sequence[Tile], width: float) -> float:
    """Inches that are left for a box of a row of so many inches."""
    count = sum(max(1, len(tile.near)) for tile in row)
    inner = sum(GAP * (len(tile.near) - 1) for tile in row if tile.near)
    return (width - sum(_gaps(row)) - inner) / count


def _gaps(row: Sequence[Tile]) -> list[float]:
    return [WIDE_GAP if one.group != other.group else GAP for one, other in pairwise(row)]


def _marks(
    node: int, cells: Sequence[Sequence[tuple[int, ...]]], x: float, y: float, below: float
) -> Iterator[Mark]:
    """The marks of a tile, row by row from the uppermost, around x."""
    for down, row in enumerate(cells):
        for place, held in enumerate(row):
            aside = (place - (len(row) - 1) / 2) * PITCH
            yield Mark(held, node, x + aside, y - down * (PITCH + below))


def _across(tile: Tile, slot: float) -> float:
    count = max(1, len(tile.near))
    return count * slot + (count - 1) * GAP


def _cells(ranks: Sequence[int], width: float) -> list[list[tuple[int, ...]]]:
    """Rows of marks: a mark for each rank, or one for all where they would need too many rows."""
    across = max(1, int((width - 0.01) / PITCH))
    if len(ranks) > MOST_ROWS * across:
        return [[tuple(ranks)]]
    held: list[tuple[int, ...]] = [(rank,) for rank in ranks]
    return [held[first : first + across] for first in range(0, len(held), across)]
