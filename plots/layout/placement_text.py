"""Where pages are, in words. Draws nothing."""

from collections.abc import Collection, Iterable, Sequence

from experiments.analysis.page_placement import PageMap, Panel, Shares
from experiments.model.quantities import list_text
from plots.layout.labels import arm_name, ranks_text

MOST = 3
"""Ways of splitting pages that are named one by one."""
UNKNOWN = "where pages were is not known"


def spans(numbers: Iterable[int]) -> str:
    """ "0–3, 8" of 0, 1, 2, 3, 8; "none" of none. Not for numbers below 0."""
    return list_text(set(numbers)).replace("-", "–").replace(",", ", ")


def percent(share: float) -> str:
    """ "12.5 %"; less than all is never 100 %, and more than nothing never 0 %."""
    tenths = round(1000 * share)
    if tenths == 1000 and share < 1:
        return "> 99.9 %"
    return "< 0.1 %" if tenths == 0 and share > 0 else f"{tenths / 10:g} %"


def summary(panel: Panel) -> str:
    """ "100 % as asked, 0 % local"."""
    if panel.as_asked is None or panel.local is None:
        return UNKNOWN
    return f"{percent(panel.as_asked)} as asked, {percent(panel.local)} local"


def splits(panel: Panel) -> list[str]:
    """How ranks with pages on several nodes, or nowhere, have them: "ranks 0–3: 25 % each on 4–7".

    Ranks with all of their pages on one node are left out. So are ranks with pages that the
    result does not name, where it names none at all.
    """
    alike: dict[tuple[Shares, float], list[int]] = {}
    for rank, each in enumerate(panel.pages):
        if len(each.shares) > 1 or each.unknown:
            nowhere = round(each.unknown / each.total, 2)
            alike.setdefault((each.picture, nowhere), []).append(rank)
    parts = []
    for ranks in alike.values():
        mine = [panel.pages[rank] for rank in ranks]
        what = _shares([each.shares for each in mine])
        unknown = sum(each.unknown for each in mine) / sum(each.total for each in mine)
        what += [f"{percent(unknown)} on no node"] if unknown else []
        parts.append(f"{_who(ranks, len(panel.pages))}: {', '.join(what)}")
    if len(parts) > MOST:
        parts = [*parts[: MOST - 1], f"{len(parts) - MOST + 1} others: see the table"]
    silent = [rank for rank, each in enumerate(panel.pages) if not each.total]
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
    for rank, each in enumerate(panel.pages):
        if len(each.shares) == 1 and not each.unknown:
            by_node.setdefault(each.shares[0][0], []).append(rank)
    single = [f"{_who(ranks, len(panel.pages))} on node {node}" for node, ranks in by_node.items()]
    return f"{what}: {'; '.join([summary(panel), *single, *splits(panel)])}."


def ranks_at(page_map: PageMap) -> str:
    """ "node 0 ranks 0–1 on CPUs 0–1; node 1 rank 2 on CPU 2"."""
    found: dict[int, list[int]] = {}
    for rank in range(page_map.ranks):
        found.setdefault(page_map.node_of(rank), []).append(rank)
    parts = []
    for node, ranks in sorted(found.items()):
        cpus = {page_map.cpus[rank] for rank in ranks}
        where = f"node {node}" if node >= 0 else "no node"
        parts.append(f"{where} {_named('rank', ranks)} on {_named('CPU', cpus)}")
    return "; ".join(parts)


def answer(page_map: PageMap) -> str:
    """A map in a sentence: how much of each kind and locality is on the nodes asked for."""
    by_verdict: dict[str, list[str]] = {}
    for panel in page_map.panels:
        found = summary(panel) if panel.pages else "not measured"
        name = f"{panel.kind} ({panel.locality}) {alike(panel)}".rstrip()
        by_verdict.setdefault(found, []).append(name)
    parts = [f"{', '.join(names)}: {found}" for found, names in by_verdict.items()]
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
        by_text.setdefault(percent(mean), []).append(node)
    return [
        f"{share} {'each ' if len(nodes) > 1 else ''}on {spans(nodes)}"
        for share, nodes in by_text.items()
    ]
