"""The marks of a machine's map: boxes of memory, ranks, and the lines from ranks to their pages.

map_layout.py and map_edges.py say where they are, style.py how they are coloured; in inches.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Ellipse, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path

from plots.analysis.page_placement import Node, Panel, Place, by_node
from plots.layout.labels import significant
from plots.layout.style import GRID, INK, KINDS, MUTED, PAPER, look
from plots.numa_map.map_edges import Point, ways
from plots.numa_map.map_layout import MARK, Box, Mark, Plan
from plots.numa_map.placement_text import spans

DDR, HBM, OTHER = KINDS["regular"].colour, KINDS["hbw"].colour, KINDS["dax_kmem"].colour
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_PAD = 0.025
_LETTER = 0.062  # inches that a digit takes, and a little more
_BACK = 0.025
_HAIR = 0.25  # points of a line for the least share, and of one for all of a rank's pages
_FULL = 1.2


def sort(node: Node) -> tuple[str, str]:
    """A node's colour, and what it is in words."""
    if node.is_hbm:
        return HBM, "HBM, with CPUs" if node.cpus else "HBM, no CPUs"
    return (DDR, "node with CPUs") if node.cpus else (OTHER, "other memory, no CPUs")


def capacities(place: Place) -> list[int]:
    """Bytes of each node."""
    return [node.total_bytes for node in place.nodes]


def held(panels: Iterable[Panel]) -> list[int]:
    """Bytes of pages on each node, of all panels."""
    return [size for panel in panels for size in by_node(panel).values()] or [0]


def unit(sizes: Sequence[int]) -> str:
    """The unit in which the largest of the sizes has one to four digits before the point."""
    power = 0
    while max(sizes) >= 1000 * 1024**power and power < len(_UNITS) - 1:
        power += 1
    return _UNITS[power]


def amount(size: int, of: str = "") -> str:
    """Three digits: "1.37 GiB"; with a unit given, a number that a small box holds: "1.4"."""
    told = of or unit([size])
    number = significant(size / 1024 ** _UNITS.index(told), 2 if of else 3)
    number = number.rstrip("0").rstrip(".") if "." in number else number
    return number if of else f"{number} {told}"


def letters(place: Place, sizes: Sequence[int]) -> int:
    """How many a node's number and one of the sizes have together, without the unit."""
    longest = max(len(str(node.id)) for node in place.nodes)
    return longest + max(len(amount(size, unit(sizes))) for size in sizes)


def machine(axes: Axes, plan: Plan, place: Place) -> None:
    """Every node with its size, every rank with its CPU."""
    raised = 0.0
    _boxes(axes, plan, place, raised)
    every = unit(capacities(place))
    for node in place.nodes:
        size = amount(node.total_bytes, "" if plan.wide else every)
        _label(axes, plan, node.id, size, raised)
    for mark in plan.marks:
        _mark(axes, mark, plan, raised)
        cpus = spans(place.cpus[rank] for rank in mark.ranks)
        if len(mark.ranks) == 1 or len(cpus) * _LETTER < plan.homes[mark.node].width:
            y = raised + mark.y - MARK / 2 - 0.01
            axes.text(mark.x, y, cpus, ha="center", va="top", color=MUTED)


def pages(axes: Axes, plan: Plan, place: Place, panel: Panel, raised: float) -> None:
    """Every node with what it holds, every rank with lines to it; `raised` inches up."""
    _boxes(axes, plan, place, raised)
    sizes = by_node(panel)
    most, every = max(sizes.values(), default=1) or 1, unit(held(place.panels))
    colour = look(panel.kind).colour
    for node in place.nodes:
        size = sizes.get(node.id, 0)
        box = plan.memory[node.id]
        if size:
            axes.add_patch(
                Rectangle(
                    (box.left, raised + box.bottom),
                    box.width * size / most,
                    box.top - box.bottom,
                    facecolor=colour,
                    alpha=0.22,
                    linewidth=0,
                    zorder=1.6,
                )
            )
        text = amount(size, "" if plan.wide else every) if size else ""
        _label(axes, plan, node.id, text, raised, muted=not size)
    _lines(axes, plan, panel, colour, raised)
    for mark in plan.marks:
        _mark(axes, mark, plan, raised)


def _boxes(axes: Axes, plan: Plan, place: Place, raised: float) -> None:
    for back in plan.backs.values():
        axes.add_patch(
            FancyBboxPatch(
                (back.left - _BACK + 0.02, raised + back.bottom - _BACK + 0.02),
                back.width + 2 * _BACK - 0.04,
                back.top - back.bottom + 2 * _BACK - 0.04,
                boxstyle=f"round,pad=0,rounding_size={_BACK}",
                facecolor=GRID,
                edgecolor="none",
                alpha=0.55,
                zorder=0.5,
            )
        )
    for node in place.nodes:
        colour = sort(node)[0]
        if node.id in plan.homes:
            _outline(axes, plan.homes[node.id], raised, colour, PAPER, 1.1)
        if node.total_bytes:
            inner = node.id in plan.homes
            _outline(
                axes,
                plan.memory[node.id],
                raised,
                colour,
                "none" if inner else PAPER,
                1.3,
                0.5 if inner else 1.0,
            )


def _outline(
    axes: Axes, box: Box, raised: float, colour: str, face: str, order: float, weight: float = 1.0
) -> None:
    axes.add_patch(
        Rectangle(
            (box.left, raised + box.bottom),
            box.width,
            box.top - box.bottom,
            facecolor=face,
            edgecolor=colour,
            linewidth=weight,
            clip_on=False,
            zorder=order,
        )
    )


def _label(
    axes: Axes, plan: Plan, node: int, text: str, raised: float, muted: bool = False
) -> None:
    """The node's number and an amount beside or below it."""
    box = plan.memory[node]
    colour = MUTED if muted else INK
    y = raised + (box.top + box.bottom) / 2
    written: dict[str, Any] = {"va": "center_baseline", "color": colour, "zorder": 4}
    if plan.stacked:
        x = (box.left + box.right) / 2
        axes.text(x, y + 0.066, str(node), ha="center", fontweight="bold", **written)
        axes.text(x, y - 0.066, text, ha="center", **written)
        return
    axes.text(box.left + _PAD, y, str(node), ha="left", fontweight="bold", **written)
    axes.text(box.right - _PAD, y, text, ha="right", **written)


def _mark(axes: Axes, mark: Mark, plan: Plan, raised: float) -> None:
    """A rank's number in a circle; of several their span in a pill, or how many they are."""
    text = spans(mark.ranks)
    if len(mark.ranks) > 1 and _pill(text) > plan.homes[mark.node].width - 0.04:
        text = f"×{len(mark.ranks)}"
    y = raised + mark.y
    drawn: dict[str, Any] = {"facecolor": PAPER, "edgecolor": INK, "linewidth": 0.6, "zorder": 3}
    if len(mark.ranks) == 1:
        axes.add_patch(Ellipse((mark.x, y), MARK, MARK, **drawn))
    else:
        corner = (mark.x - _pill(text) / 2, y - MARK / 2)
        shape = f"round,pad=0,rounding_size={MARK / 2 - 0.001}"
        axes.add_patch(FancyBboxPatch(corner, _pill(text), MARK, boxstyle=shape, **drawn))
    axes.text(mark.x, y, text, ha="center", va="center_baseline", zorder=4)


def _pill(text: str) -> float:
    """Inches that a mark with so much text is wide."""
    return max(MARK, _LETTER * len(text) + 0.08)


def _lines(axes: Axes, plan: Plan, panel: Panel, colour: str, raised: float) -> None:
    """From each mark to each node with pages of its ranks."""
    coming: dict[int, dict[Mark, float]] = {}
    for mark in plan.marks:
        mine = [panel.pages[rank] for rank in mark.ranks]
        total = sum(each.total for each in mine) or 1
        for node in sorted({node for each in mine for node, _ in each.shares}):
            size = sum(size for each in mine for other, size in each.placed if other == node)
            coming.setdefault(node, {})[mark] = size / total
    for node, shares in coming.items():
        if node in plan.memory:
            for mark, way in ways(plan, node, list(shares)).items():
                _line(axes, [(x, raised + y) for x, y in way], shares[mark], colour)


def _line(axes: Axes, way: Sequence[Point], share: float, colour: str) -> None:
    axes.add_patch(
        PathPatch(
            Path(list(way), [Path.MOVETO, *[Path.CURVE4] * (len(way) - 1)]),
            facecolor="none",
            edgecolor=colour,
            linewidth=_HAIR + (_FULL - _HAIR) * share,
            alpha=0.4 + 0.5 * share,
            zorder=2.0,
        )
    )
    axes.plot(
        *way[-1],
        marker="o",
        markersize=1.2 + 1.2 * share,
        color=colour,
        markeredgewidth=0,
        clip_on=False,
        zorder=2.2,
    )
