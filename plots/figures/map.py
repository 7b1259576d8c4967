"""Figure: which rank's pages are on which NUMA node: heat maps with a row a node, a column a rank.

The first panel is the machine: the CPU of each rank. Every other one has the shares of each rank's
pages in one kind and locality.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch, Rectangle

from experiments.analysis.findings import Findings
from experiments.analysis.page_placement import Node, PageMap, Panel, by_node, local_nodes, owners
from experiments.model.quantities import counted
from plots.layout import placement_text
from plots.layout.figure_layout import Drawing, Skipped, say_instead, sheet, wrap
from plots.layout.labels import EMULATED, arm_name, bytes_text, mpi_name, ranks_text
from plots.layout.style import (
    ALERT,
    GRID,
    INK,
    KINDS,
    MUTED,
    PAPER,
    look,
    page_inches,
    text_points,
)

NAME = "placement-map"
TITLE = "Where ranks and pages were"
MOST_INCHES = 7.4
"""Height of all panels of a drawing: what a page of a paper holds."""

_CELL = 0.122  # inches of a row of cells, and of a line of text
_LETTER = 0.064  # inches that a character takes at most, on average
_HEAD = 0.27  # above each panel
_SKIPPED = 0.45  # a panel that says why it was not measured
_FAINT, _FULL = 0.08, 0.6  # opacity of the smallest share, and of all of a rank's pages


def placement_map(found: Findings) -> list[Drawing | Skipped]:
    """One drawing per rank count, binding and set of launches alike; more for many panels."""
    if not found.page_maps:
        reason = "no launch recorded the machine's nodes and where its pages are"
        return [Skipped(NAME, TITLE, reason)]
    drawn: list[Drawing | Skipped] = []
    seen: Counter[str] = Counter()
    for page_map in found.page_maps:
        placed = (page_map.ranks, page_map.binding)
        alike = [each for each in found.page_maps if (each.ranks, each.binding) == placed]
        others = [each for each in alike if each is not page_map]
        for panels in _pages(page_map):
            part = f"-{page_map.ranks}-ranks-{page_map.binding}"
            seen[part] += 1
            part += f"-{seen[part]}" if seen[part] > 1 else ""
            drawn.append(_drawing(replace(page_map, panels=panels), part, found.machine, others))
    return drawn


def _pages(page_map: PageMap) -> Iterator[tuple[Panel, ...]]:
    """The panels in groups that fit on a page each, below the machine's own."""
    room = MOST_INCHES - _height(page_map)
    group: list[Panel] = []
    for panel in page_map.panels:
        used = sum(_HEAD + _height(page_map, each) for each in group)
        if group and used + _HEAD + _height(page_map, panel) > room:
            yield tuple(group)
            group = []
        group.append(panel)
    yield tuple(group)


def _height(page_map: PageMap, panel: Panel | None = None) -> float:
    """Inches of a panel: its lines of text, its cells, the numbers of the ranks."""
    if panel and panel.skipped:
        return _SKIPPED
    return _CELL * ((len(_lines(panel)) if panel else 0) + len(page_map.nodes) + 1)


def _drawing(page_map: PageMap, part: str, machine: str, others: Sequence[PageMap]) -> Drawing:
    title = f"{TITLE}, {ranks_text(page_map.ranks)} {page_map.binding}"
    every = [_labels(page_map, None), *(_labels(page_map, panel) for panel in page_map.panels)]
    left = 0.1 + _LETTER * max(len(label) for labels in every for label in labels)
    page = sheet(
        title,
        _details(page_map),
        panel_height=[_height(page_map), *(_height(page_map, panel) for panel in page_map.panels)],
        row_heads=["the CPU of each rank", *map(_title, page_map.panels)],
        legend=_legend(page_map),
        alerts=_alerts(page_map, machine, others),
        notes=_notes(page_map),
        left=left,
        below=0.02,
        shared=False,
    )
    width = page_inches() - left - 0.1
    first, *rest = page.flat()
    placed = enumerate(page_map.cpus)
    cpus = {(page_map.node_of(rank), rank): (1.0, str(cpu)) for rank, cpu in placed}
    _heat(first, page_map, cpus, MUTED, every[0], width)
    for axes, panel in zip(rest, page_map.panels, strict=True):
        _panel(axes, panel, page_map, width)
    return Drawing(
        NAME,
        part,
        title,
        "A row is a NUMA node, a column a rank; a cell is the share of the rank's pages on that "
        "node, in per cent where there is room. Outlined nodes are local to the rank: the node of "
        "its CPU, and those without CPUs that it serves best. Beside a node: its memory (first "
        "panel), or the pages on it. "
        f"As the kernel reports ({', '.join(page_map.methods)}). Launches with the same "
        "rounded percentages share a panel. It shows the launch with the fewest pages on the "
        "requested nodes; the table has every launch.",
        _description(page_map),
        page,
    )


def _title(panel: Panel) -> str:
    return f"{panel.kind}, {panel.locality}"


def _lines(panel: Panel) -> list[str]:
    """The words above a panel's cells, in lines."""
    where = placement_text.alike(panel)
    words = [where] if where else []
    words += [placement_text.summary(panel), *placement_text.splits(panel)]
    inches = page_inches() - 0.16
    return [line for text in words for line in wrap(text, inches, text_points())]


def _labels(page_map: PageMap, panel: Panel | None) -> list[str]:
    """The nodes in words: "4 HBM, 512 MiB" of the machine, or of the pages of a panel."""
    held = by_node(panel) if panel else {node.id: node.total_bytes for node in page_map.nodes}
    return [
        f"{node.id}{' HBM' * node.is_hbm}"
        + (f", {bytes_text(held[node.id])}" if held.get(node.id) else "")
        for node in page_map.nodes
    ]


def _panel(axes: Axes, panel: Panel, page_map: PageMap, width: float) -> None:
    if panel.skipped:
        say_instead(axes, f"{panel.kind}: {panel.skipped}")
        return
    cells = {
        (node, rank): (share, _percent(share))
        for rank, each in enumerate(panel.pages)
        for node, share in each.shares
    }
    lines, labels = _lines(panel), _labels(page_map, panel)
    _heat(axes, page_map, cells, look(panel.kind).colour, labels, width, len(lines))
    strays = any(each.as_asked != 1 for each in panel.pages)
    for number, text in enumerate(lines):
        axes.annotate(
            text,
            (0.06 / page_inches(), number + 0.5 - len(lines)),
            xycoords=("figure fraction", "data"),
            va="center_baseline",
            color=ALERT if strays else MUTED,
        )


def _percent(share: float) -> str:
    """A whole number that never hides a page: less than all is below 100, some is above 0."""
    return "100" if share == 1 else str(min(99, max(1, round(100 * share))))


def _heat(
    axes: Axes,
    page_map: PageMap,
    cells: Mapping[tuple[int, int], tuple[float, str]],
    colour: str,
    labels: Sequence[str],
    width: float,
    lines: int = 0,
) -> None:
    """The cells, their outlines, the nodes to the left and the ranks below; `lines` above.

    Args:
        cells: {(node, rank): (share, text)}; texts are written where all have room.
        width: of all ranks, in inches.
    """
    nodes, ranks = len(page_map.nodes), page_map.ranks
    rows = {node.id: row for row, node in enumerate(page_map.nodes)}
    shares, texts = np.zeros((nodes, ranks)), {}
    for (place, rank), (share, text) in cells.items():
        if place in rows:
            shares[rows[place], rank], texts[rows[place], rank] = share, text
    axes.set_xlim(0, ranks)
    axes.set_ylim(nodes + 1, -lines)
    axes.set_axis_off()
    filled = np.tile(to_rgba(colour), (nodes, ranks, 1))
    filled[..., 3] = np.where(shares > 0, _FAINT + (_FULL - _FAINT) * shares, 0)
    axes.pcolormesh(filled, edgecolors=GRID, linewidth=0.3)
    for rank in range(ranks):
        for local in local_nodes(page_map.nodes, page_map.node_of(rank)):
            outline = Rectangle((rank, rows[local]), 1, 1, facecolor="none", edgecolor=INK)
            outline.set(linewidth=0.6, zorder=2)
            axes.add_patch(outline)
    for row, (node, text) in enumerate(zip(page_map.nodes, labels, strict=True)):
        axes.annotate(
            text,
            (0, row + 0.5),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            va="center_baseline",
            color=_sort(node)[0],
        )
    widest = _LETTER * (len(str(ranks - 1)) + 1)
    for rank in range(0, ranks, max(1, round(np.ceil(widest * ranks / width)))):
        axes.text(rank + 0.5, nodes + 0.55, str(rank), ha="center", va="center", color=MUTED)
    if _LETTER * max(map(len, texts.values()), default=0) <= width / ranks:
        for (row, rank), text in texts.items():
            axes.text(rank + 0.5, row + 0.5, text, ha="center", va="center_baseline", zorder=3)


def _sort(node: Node) -> tuple[str, str]:
    """A node's colour, and what it is in words."""
    if node.is_hbm:
        return KINDS["hbw"].colour, "HBM, with CPUs" if node.cpus else "HBM, no CPUs"
    if node.cpus:
        return KINDS["regular"].colour, "node with CPUs"
    return KINDS["dax_kmem"].colour, "other memory, no CPUs"


def _details(page_map: PageMap) -> str:
    mpis = ", ".join(map(mpi_name, page_map.mpis))
    arms = "; ".join(map(arm_name, page_map.arms))
    return f"{arms}; {mpis}; {counted(len(page_map.launches), 'launch', 'es')}"


def _alerts(page_map: PageMap, machine: str, others: Sequence[PageMap]) -> list[str]:
    alerts = [machine] if machine else []
    alerts += [EMULATED] if any(panel.emulated for panel in page_map.panels) else []
    if others:
        launches = sum(len(other.launches) for other in others)
        alerts.append(
            f"{counted(launches, 'launch', 'es')} {'has' if launches == 1 else 'have'} other nodes "
            f"or CPUs: see {'that map' if len(others) == 1 else 'those maps'} too."
        )
    differing = list(dict.fromkeys(_title(p) for p in page_map.panels if placement_text.alike(p)))
    if differing:
        alerts.append(f"Not the same in all launches: {'; '.join(differing)}.")
    return alerts


def _legend(page_map: PageMap) -> list[Artist]:
    sorts = dict.fromkeys(_sort(node) for node in page_map.nodes if node.total_bytes)
    return [
        *(Patch(facecolor=colour, label=label) for colour, label in sorts),
        Patch(facecolor=PAPER, edgecolor=INK, linewidth=0.6, label="local to the rank"),
    ]


def _notes(page_map: PageMap) -> list[str]:
    with_cpus = [node for node in page_map.nodes if node.cpus]
    cpus = [f"{placement_text.spans(node.cpus)} on node {node.id}" for node in with_cpus]
    hbm = [node.id for node in page_map.nodes if node.is_hbm]
    notes = [
        f"CPUs: {'; '.join(cpus)}.",
        f"HBM: {placement_text.spans(hbm)}" + (f" ({page_map.rule})." if hbm else "."),
    ]
    for node in page_map.nodes:
        near = owners(node, with_cpus) if with_cpus and not node.cpus else []
        if len(near) > 1:
            notes.append(
                f"Node {node.id} is as near to each of nodes {placement_text.spans(near)}."
            )
    return notes


def _description(page_map: PageMap) -> str:
    every = [
        f"node {node.id}, {_sort(node)[1]}, {bytes_text(node.total_bytes)}"
        + (f", CPUs {placement_text.spans(node.cpus)}" if node.cpus else "")
        for node in page_map.nodes
    ]
    panels = " ".join(placement_text.sentence(panel) for panel in page_map.panels)
    return (
        f"Map of a machine with {counted(len(every), 'NUMA node')}: "
        f"{'; '.join(every)}. Ranks: {placement_text.ranks_at(page_map)}. Pages: {panels}"
    )
