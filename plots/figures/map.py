"""Figure: the machine as a map, with its nodes, the CPU of each rank, and where all pages are.

The first panel is the machine and its ranks. In every other one lines lead from the ranks to the
nodes that hold their pages, in one kind and locality each.
"""

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plots.analysis.findings import Findings
from plots.analysis.page_placement import Panel, Place, owners
from plots.layout.figure_layout import Drawing, Skipped, say_instead, sheet, wrap
from plots.layout.labels import EMULATED, arm_name, mpi_name, ranks_text
from plots.layout.style import ALERT, COLUMN_INCHES, INK, MUTED, PAPER, TEXT_POINTS, look
from plots.numa_map import map_layout, node_boxes, placement_text

NAME = "placement-map"
TITLE = "Where ranks and pages were"
MOST_ROWS = 4
"""Rows of panels in a drawing, beside the machine's own: what a page of a paper holds."""

_LEFT = 0.06
_WIDTH = COLUMN_INCHES - 0.16
_BETWEEN = 0.2  # inches between two columns
_BAND = 0.3
_LINE = 0.13
_MOST_SLOTS = 4  # of a machine whose panels stand two in a row


def placement_map(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per rank count, binding and set of launches alike; more for many panels."""
    if not found.places:
        reason = "no launch recorded the machine's nodes and where its pages are"
        return [Skipped(NAME, TITLE, reason)]
    drawn: list[Drawing | Skipped] = []
    seen: dict[str, int] = {}
    for place in found.places:
        deep = len(map_layout.rows(map_layout.tiles(place.nodes)))
        most = max(1, MOST_ROWS // deep) * _columns(place)
        for first in range(0, max(1, len(place.panels)), most):
            panels = place.panels[first : first + most]
            part = f"-{place.ranks}-ranks-{place.binding}"
            seen[part] = seen.get(part, 0) + 1
            part += f"-{seen[part]}" if seen[part] > 1 else ""
            others = [p for p in found.places if _beside(p, place)]
            drawn.append(_drawing(replace(place, panels=panels), part, found.machine, others))
    return drawn


def _beside(other: Place, place: Place) -> bool:
    """Whether it is of the same ranks and binding, and yet another map."""
    return other is not place and (other.ranks, other.binding) == (place.ranks, place.binding)


def _drawing(place: Place, part: str, machine: str, others: Sequence[Place]) -> Drawing:
    columns = _columns(place)
    width = (_WIDTH - _BETWEEN * (columns - 1)) / columns
    ranks = {node.id: _ranks_on(place, node.id) for node in place.nodes}
    capacity = node_boxes.letters(place, node_boxes.capacities(place))
    machines = map_layout.plan(
        place.nodes, ranks, _WIDTH, band=0.07, letters=capacity, below_marks=_LINE
    )
    holding = node_boxes.letters(place, node_boxes.held(place.panels))
    plan = map_layout.plan(place.nodes, ranks, width, band=_BAND, letters=holding)
    said = [_said(panel, width) for panel in place.panels]
    rows = [said[first : first + columns] for first in range(0, len(said), columns)]
    heights = [plan.height + _LINE * max(map(len, row)) + 0.05 for row in rows]
    page = sheet(
        f"{TITLE}, {ranks_text(place.ranks)} {place.binding}",
        _details(place),
        rows=1 + len(rows),
        columns=columns,
        panel_height=[machines.height, *heights],
        row_heads=[""] * (1 + len(rows)),
        legend=_legend(place),
        legend_columns=2,
        alerts=_alerts(place, machine, others),
        notes=_notes(place, machines, plan),
        left=_LEFT,
        below=0.02,
    )
    first = _fresh(page.panels[0][0], 0.0, (_WIDTH, machines.height))
    _head(first, "the machine, and the CPU of each rank", INK)
    node_boxes.machine(first, machines, place)
    grid = page.flat()
    for number, panel in enumerate(place.panels):
        left = (number % columns) * (width + _BETWEEN)
        axes = _fresh(grid[columns + number], left, (width, heights[number // columns]))
        _panel(axes, panel, place, plan, said[number])
    for axes in grid:
        axes.remove()
    return Drawing(
        NAME,
        part,
        f"{TITLE}, {ranks_text(place.ranks)} {place.binding}",
        "Each box is the memory of a NUMA node, those without CPUs above the node with CPUs that "
        "they serve best; near nodes stand close together. A line leads from a rank to each node "
        "that holds its pages, heavier for a larger share, and a node's fill is the share of the "
        "fullest. Local is what lies on the node of a rank's CPU or on one without CPUs beside it. "
        f"As the kernel tells ({', '.join(place.methods)}). Launches alike to a whole per cent "
        "share a panel, which shows the one with the fewest pages as asked; the table has each.",
        _description(place),
        page.figure,
    )


def _columns(place: Place) -> int:
    """Two panels side by side where both they and their heads have room."""
    narrow = (_WIDTH - _BETWEEN) / 2
    heads = [_title(panel) for panel in place.panels]
    fit = all(len(wrap(text, narrow, TEXT_POINTS, bold=True)) == 1 for text in heads)
    return 2 if map_layout.slots(place.nodes) <= _MOST_SLOTS and fit and len(heads) > 1 else 1


def _title(panel: Panel) -> str:
    return f"{panel.kind}, {panel.locality}"


def _said(panel: Panel, width: float) -> list[str]:
    """What stands below a panel, in lines."""
    if panel.skipped:
        return []
    told = [placement_text.verdict(panel), *placement_text.splits(panel)]
    where = placement_text.alike(panel)
    return [
        line
        for text in ([where] if where else []) + told
        for line in wrap(text, width, TEXT_POINTS)
    ]


def _ranks_on(place: Place, node: int) -> list[int]:
    return [rank for rank in range(place.ranks) if place.node_of(rank) == node]


def _details(place: Place) -> str:
    mpis = ", ".join(map(mpi_name, place.mpis))
    arms = "; ".join(map(arm_name, place.arms))
    return f"{arms}; {mpis}; {_count(len(place.launches), 'launch', 'launches')}"


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _alerts(place: Place, machine: str, others: Sequence[Place]) -> list[str]:
    told = [machine] if machine else []
    told += [EMULATED] if any(panel.emulated for panel in place.panels) else []
    if others:
        launches = sum(len(other.launches) for other in others)
        told.append(
            f"{_count(launches, 'launch has', 'launches have')} other nodes or CPUs: see "
            f"{'that map' if len(others) == 1 else 'those maps'} too."
        )
    differing = list(dict.fromkeys(_title(p) for p in place.panels if placement_text.alike(p)))
    if differing:
        told.append(f"Not the same in all launches: {'; '.join(differing)}.")
    return told


def _legend(place: Place) -> list[Artist]:
    sorts = dict.fromkeys(node_boxes.sort(node) for node in place.nodes if node.total_bytes)
    return [
        *(
            Patch(facecolor=PAPER, edgecolor=colour, linewidth=1.0, label=label)
            for colour, label in sorts
        ),
        Line2D(
            [],
            [],
            color=INK,
            linestyle="none",
            marker="o",
            markersize=5.5,
            markerfacecolor=PAPER,
            markeredgewidth=0.7,
            label="rank",
        ),
    ]


def _notes(place: Place, machines: map_layout.Plan, plan: map_layout.Plan) -> list[str]:
    by_count: dict[int, list[int]] = {}
    for node in place.nodes:
        if node.cpus:
            by_count.setdefault(len(node.cpus), []).append(node.id)
    told = [
        f"{_count(count, 'CPU', 'CPUs')} on {'each of nodes' if len(ids) > 1 else 'node'} "
        f"{placement_text.spans(ids)}"
        for count, ids in by_count.items()
    ]
    notes = [f"Below a rank, its CPU; {', '.join(told)}."]
    pages = node_boxes.unit(node_boxes.held(place.panels))
    if not machines.wide:
        sizes = node_boxes.unit(node_boxes.capacities(place))
        notes.append(f"In a box: the node, then its {sizes} (first panel) or the {pages} on it.")
    elif not plan.wide:
        notes.append(f"In a box below the first panel: the node, then the {pages} on it.")
    with_cpus = [node for node in place.nodes if node.cpus]
    for node in place.nodes:
        near = owners(node, with_cpus) if with_cpus and not node.cpus else []
        if len(near) > 1:
            notes.append(
                f"Node {node.id} is as near to each of nodes {placement_text.spans(near)}."
            )
    hbm = [node.id for node in place.nodes if node.is_hbm]
    notes.append(f"HBM: {placement_text.spans(hbm)}" + (f" ({place.rule})." if hbm else "."))
    return notes


def _fresh(axes: Axes, left: float, size: tuple[float, float]) -> Axes:
    """Axes whose units are inches, as high up as those of the sheet."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    place, (width, height) = axes.get_position(), figure.get_size_inches()
    corner = ((_LEFT + left) / width, place.y1 - size[1] / height)
    found = figure.add_axes(
        (*corner, size[0] / width, size[1] / height), xlim=(0, size[0]), ylim=(0, size[1])
    )
    found.set_axis_off()
    return found


def _head(axes: Axes, text: str, colour: str) -> None:
    axes.set_title(text, loc="left", pad=2.5, fontweight="bold", color=colour)


def _panel(
    axes: Axes, panel: Panel, place: Place, plan: map_layout.Plan, lines: Sequence[str]
) -> None:
    _head(axes, _title(panel), look(panel.kind).colour)
    if panel.skipped:
        reason = panel.skipped.removeprefix(f"{panel.kind}: ")  # many name their kind themselves
        say_instead(axes, f"{panel.kind}: {reason}")
        return
    raised = axes.get_ylim()[1] - plan.height
    node_boxes.pages(axes, plan, place, panel, raised)
    strays = any(each.as_asked != 1 for each in panel.pages)
    for down, text in enumerate(lines):
        axes.text(
            0,
            raised - 0.04 - _LINE * down,
            text,
            va="top",
            color=ALERT if strays else MUTED,
        )


def _description(place: Place) -> str:
    every = [
        f"node {node.id}, {node_boxes.sort(node)[1]}, {node_boxes.amount(node.total_bytes)}"
        + (f", CPUs {placement_text.spans(node.cpus)}" if node.cpus else "")
        for node in place.nodes
    ]
    panels = " ".join(placement_text.sentence(panel) for panel in place.panels)
    return (
        f"Map of a machine with {_count(len(every), 'NUMA node', 'NUMA nodes')}: "
        f"{'; '.join(every)}. Ranks: {placement_text.ranks_at(place)}. Pages: {panels}"
    )
