"""Figure: which rank's pages are on which NUMA node: heat maps with a row a node, a column a rank.

The first panel is the machine: the CPU of each rank. Every other one has the shares of each rank's
pages in one kind and locality.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch, Rectangle

from experiments.analysis.campaign import Campaign
from experiments.analysis.page_placement import (
    Node,
    PageMap,
    Panel,
    Shares,
    by_node,
    frame,
    local_nodes,
    owners,
)
from experiments.model.quantities import bytes_text, counted, ranks_text, share_text, spans
from plots.layout.figure_layout import Drawing, Figure, say_instead, sheet, wrap
from plots.layout.labels import EMULATED, arm_name, mpi_name
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
from plots.tables.listing import PAGES, Listing
from plots.text.claims import Answer

NAME = "placement-map"
TITLE = "Where ranks and pages were"
MOST_INCHES = 7.4
"""Height of all panels of a drawing: what a page of a paper holds."""

MOST_SPLITS = 3
"""Ways of splitting pages that are named one by one."""
UNKNOWN = "where pages were is not known"
_CELL = 0.122  # inches of a row of cells, and of a line of text
_LETTER = 0.064  # inches that a character takes at most, on average
_HEAD = 0.27  # above each panel
_SKIPPED = 0.45  # a panel that says why it was not measured
_FAINT, _FULL = 0.08, 0.6  # opacity of the smallest share, and of all of a rank's pages


def needs(campaign: Campaign) -> str:
    """A campaign needs launches that recorded their nodes and pages."""
    if campaign.page_maps:
        return ""
    return "no launch recorded the machine's nodes and where its pages are"


def draw(campaign: Campaign) -> list[Drawing]:
    """One drawing per rank count, binding and set of launches alike; more for many panels."""
    drawn = []
    seen: Counter[str] = Counter()
    for page_map in campaign.page_maps:
        placed = (page_map.ranks, page_map.binding)
        others = [
            candidate
            for candidate in campaign.page_maps
            if (candidate.ranks, candidate.binding) == placed and candidate is not page_map
        ]
        for panels in _pages(page_map):
            part = f"-{page_map.ranks}-ranks-{page_map.binding}"
            seen[part] += 1
            part += f"-{seen[part]}" if seen[part] > 1 else ""
            drawn.append(_drawing(replace(page_map, panels=panels), part, campaign.machine, others))
    return drawn


def _pages(page_map: PageMap) -> Iterator[tuple[Panel, ...]]:
    """The panels in groups that fit on a page each, below the machine's own."""
    room = MOST_INCHES - _height(page_map)
    group: list[Panel] = []
    for panel in page_map.panels:
        used = sum(_HEAD + _height(page_map, member) for member in group)
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
    where = alike(panel)
    words = [where] if where else []
    words += [summary(panel), *splits(panel)]
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
        for rank, pages in enumerate(panel.pages)
        for node, share in pages.shares
    }
    lines, labels = _lines(panel), _labels(page_map, panel)
    _heat(axes, page_map, cells, look(panel.kind).colour, labels, width, len(lines))
    strays = any(pages.as_asked != 1 for pages in panel.pages)
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
    differing = list(dict.fromkeys(_title(p) for p in page_map.panels if alike(p)))
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
    cpus = [f"{spans(node.cpus)} on node {node.id}" for node in with_cpus]
    hbm = [node.id for node in page_map.nodes if node.is_hbm]
    notes = [
        f"CPUs: {'; '.join(cpus)}.",
        f"HBM: {spans(hbm)}" + (f" ({page_map.rule})." if hbm else "."),
    ]
    for node in page_map.nodes:
        near = owners(node, with_cpus) if with_cpus and not node.cpus else []
        if len(near) > 1:
            notes.append(f"Node {node.id} is as near to each of nodes {spans(near)}.")
    return notes


def _description(page_map: PageMap) -> str:
    every = [
        f"node {node.id}, {_sort(node)[1]}, {bytes_text(node.total_bytes)}"
        + (f", CPUs {spans(node.cpus)}" if node.cpus else "")
        for node in page_map.nodes
    ]
    panels = " ".join(sentence(panel) for panel in page_map.panels)
    return (
        f"Map of a machine with {counted(len(every), 'NUMA node')}: "
        f"{'; '.join(every)}. Ranks: {ranks_at(page_map)}. Pages: {panels}"
    )


def answers(campaign: Campaign) -> Iterator[Answer]:
    """Where ranks and pages were, of machines on which that is a question."""
    asked = [
        page_map
        for page_map in campaign.page_maps
        if campaign.machine or sum(node.total_bytes > 0 for node in page_map.nodes) > 1
    ]
    pages = [buffers for page_map in asked for panel in page_map.panels for buffers in panel.pages]
    if asked:
        yield Answer(
            "Where was every rank, and where was every page?",
            _as_asked([buffers.as_asked for buffers in pages]),
            points=tuple(answer(page_map) for page_map in asked),
            figure=NAME,
        )


def _as_asked(shares: Sequence[float | None]) -> str:
    """One share for each rank and kind of memory; None where no page is known."""
    pairs = f"{len(shares)} pairs of a rank and a kind of memory"
    unknown = shares.count(None)
    strays = sum(share != 1 for share in shares) - unknown
    silent = f" No page of {unknown} of {pairs} is known." if unknown else ""
    if strays:
        return f"Not always where asked: of {pairs}, {strays} had pages elsewhere.{silent}"
    if unknown == len(shares):
        return "Not measured. The results name no page."
    if unknown:
        return f"Every known page was on the nodes asked for.{silent}"
    return "Every page of every rank was on the nodes asked for, in every kind and launch."


def summary(panel: Panel) -> str:
    """ "100 % as asked, 0 % local"."""
    if panel.as_asked is None or panel.local is None:
        return UNKNOWN
    return f"{share_text(panel.as_asked)} as asked, {share_text(panel.local)} local"


def splits(panel: Panel) -> list[str]:
    """How ranks with pages on several nodes, or nowhere, have them: "ranks 0–3: 25 % each on 4–7".

    Ranks with all of their pages on one node are left out. So are ranks with pages that the
    result does not name, where it names none at all.
    """
    alike: dict[tuple[Shares, float], list[int]] = {}
    for rank, pages in enumerate(panel.pages):
        if len(pages.shares) > 1 or pages.unknown:
            nowhere = round(pages.unknown / pages.total, 2)
            alike.setdefault((pages.picture, nowhere), []).append(rank)
    parts = []
    for ranks in alike.values():
        mine = [panel.pages[rank] for rank in ranks]
        what = _shares([pages.shares for pages in mine])
        unknown = sum(pages.unknown for pages in mine) / sum(pages.total for pages in mine)
        what += [f"{share_text(unknown)} on no node"] if unknown else []
        parts.append(f"{_who(ranks, len(panel.pages))}: {', '.join(what)}")
    if len(parts) > MOST_SPLITS:
        parts = [*parts[: MOST_SPLITS - 1], f"{len(parts) - MOST_SPLITS + 1} others: see the table"]
    silent = [rank for rank, pages in enumerate(panel.pages) if not pages.total]
    if 0 < len(silent) < len(panel.pages):
        parts.append(f"{_who(silent, len(panel.pages))}: {UNKNOWN}")
    return parts


def alike(panel: Panel) -> str:
    """Which launches are so, where not all are: "in 5 of 6 launches (host)"; else ""."""
    if len(panel.launches) == panel.of:
        return ""
    where = f"in {len(panel.launches)} of {panel.of} launches"
    if not set(panel.arms) & set(panel.others):
        return f"{where} ({', '.join(map(arm_name, panel.arms))})"
    return f"{where} ({panel.launches[0]})" if len(panel.launches) == 1 else where


def sentence(panel: Panel) -> str:
    """A panel in words: for screen readers, and as an answer."""
    what = ", ".join(filter(None, (panel.kind, panel.locality, alike(panel))))
    if panel.skipped:
        return f"{what}: not measured: {panel.skipped}."
    by_node: dict[int, list[int]] = {}
    for rank, pages in enumerate(panel.pages):
        if len(pages.shares) == 1 and not pages.unknown:
            by_node.setdefault(pages.shares[0][0], []).append(rank)
    single = [f"{_who(ranks, len(panel.pages))} on node {node}" for node, ranks in by_node.items()]
    return f"{what}: {'; '.join([summary(panel), *single, *splits(panel)])}."


def ranks_at(page_map: PageMap) -> str:
    """ "node 0 ranks 0–1 on CPUs 0–1; node 1 rank 2 on CPU 2"."""
    ranks_by_node: dict[int, list[int]] = {}
    for rank in range(page_map.ranks):
        ranks_by_node.setdefault(page_map.node_of(rank), []).append(rank)
    parts = []
    for node, ranks in sorted(ranks_by_node.items()):
        cpus = {page_map.cpus[rank] for rank in ranks}
        where = f"node {node}" if node >= 0 else "no node"
        parts.append(f"{where} {_named('rank', ranks)} on {_named('CPU', cpus)}")
    return "; ".join(parts)


def answer(page_map: PageMap) -> str:
    """A map in a sentence: how much of each kind and locality is on the nodes asked for."""
    by_verdict: dict[str, list[str]] = {}
    for panel in page_map.panels:
        verdict = summary(panel) if panel.pages else "not measured"
        name = f"{panel.kind} ({panel.locality}) {alike(panel)}".rstrip()
        by_verdict.setdefault(verdict, []).append(name)
    parts = [f"{', '.join(names)}: {verdict}" for verdict, names in by_verdict.items()]
    return f"{ranks_text(page_map.ranks)} {page_map.binding}. {'; '.join(parts)}."


def _who(ranks: Sequence[int], of: int) -> str:
    if len(ranks) == of:
        return "every rank" if of > 1 else "the rank"
    return _named("rank", ranks)


def _named(what: str, numbers: Collection[int]) -> str:
    """ "ranks 0–3", "CPU 2"."""
    return f"{what}{'s' * (len(numbers) > 1)} {spans(numbers)}"


def _shares(every: Sequence[Shares]) -> list[str]:
    """The mean shares of ranks that differ by less than a per cent, in words."""
    by_text: dict[str, list[int]] = {}
    for index, (node, _) in enumerate(every[0]):
        mean = sum(shares[index][1] for shares in every) / len(every)
        by_text.setdefault(share_text(mean), []).append(node)
    return [
        f"{share} {'each ' if len(nodes) > 1 else ''}on {spans(nodes)}"
        for share, nodes in by_text.items()
    ]


TABLE = Listing(
    "pages",
    "Where every rank and every page was",
    "The CPU of each rank and its node; the nodes asked for; bytes of the rank's buffers on "
    "each node, as the kernel reports by the method named. Local: bytes on the node of the CPU "
    "or on a node without CPUs beside it. Launches of an arm that agree to the byte share a "
    "row.",
    lambda campaign: frame(campaign.launches),
    PAGES,
)
FIGURE = Figure(NAME, TITLE, draw, needs)
