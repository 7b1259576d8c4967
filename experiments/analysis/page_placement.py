"""Where every rank and every page was, from what launches recorded: maps to draw, rows to list.

Pure. Launches that are alike in it share a map, whatever arm they are of; one that differs is never
left out: its pages have a panel of their own, its ranks a map of their own.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from experiments.model.arms import arm_key
from experiments.results import recorded
from experiments.results.result import Pool, Rank, Result


@dataclass(frozen=True)
class Node:
    """A NUMA node as a result keeps it; experiments.machine.facts says what is what."""

    id: int
    cpus: tuple[int, ...]
    total_bytes: int
    distances: tuple[tuple[int, int], ...]
    initiators: tuple[int, ...]
    is_hbm: bool


def nodes_of(launch: Result) -> tuple[Node, ...]:
    """The nodes with CPUs or memory that a launch recorded; none of an older version's."""
    topology = launch.facts.topology
    return tuple(
        Node(
            node.id,
            node.cpus,
            node.total_bytes,
            tuple(sorted((int(other), far) for other, far in node.distances.items())),
            node.initiators,
            node.is_hbm,
        )
        for node in (topology.nodes if topology else ())
        if node.cpus or node.total_bytes
    )


def node_of(nodes: Iterable[Node], cpu: int) -> int:
    """The number of the node that has a CPU; -1 where none has it."""
    return next((node.id for node in nodes if cpu in node.cpus), -1)


def owners(node: Node, with_cpus: Sequence[Node]) -> list[int]:
    """The nodes with CPUs that one without serves best: by HMAT, else the nearest, all of a tie."""
    numbers = [candidate.id for candidate in with_cpus]
    by_hmat = [number for number in numbers if number in node.initiators]
    far = dict(node.distances)
    least = min(far.get(number, 255) for number in numbers)
    return by_hmat or [number for number in numbers if far.get(number, 255) == least]


def local_nodes(nodes: Sequence[Node], cpu_node: int) -> tuple[int, ...]:
    """The memory that belongs to a node with CPUs, as hbmcomm.Topology has it, of a result."""
    with_cpus = [node for node in nodes if node.cpus]
    return tuple(
        node.id
        for node in nodes
        if node.total_bytes
        and cpu_node in ([node.id] if node.cpus else node.initiators or owners(node, with_cpus))
    )


Launches = Iterable[Result]
Shares = tuple[tuple[int, float], ...]
"""(node, share of a rank's bytes there), in the order of nodes."""


@dataclass(frozen=True)
class Pages:
    """The buffers of one rank in one kind and locality.

    Attributes:
        asked: the nodes of the kind there.
        near: the nodes that belong to the rank's CPU: its own, and those without CPUs beside it.
        placed: (node, bytes) as the kernel reports, in the order of nodes.
        unknown: bytes of the buffers that the kernel put nowhere; 0 where a result does not say
            how long they are.
    """

    asked: tuple[int, ...]
    near: tuple[int, ...]
    placed: tuple[tuple[int, int], ...]
    unknown: int
    method: str
    emulated: bool

    @property
    def total(self) -> int:
        """All bytes, wherever they are."""
        return sum(size for _, size in self.placed) + self.unknown

    @property
    def as_asked(self) -> float | None:
        """The share of all bytes on the nodes asked for; None where none is known."""
        return _share([self], "asked")

    @property
    def local(self) -> float | None:
        """The share of all bytes on the nodes of the rank's CPU; None where none is known."""
        return _share([self], "near")

    @property
    def shares(self) -> Shares:
        """Shares of the nodes that hold any of its pages."""
        return tuple((node, size / self.total) for node, size in self.placed if size)

    @property
    def picture(self) -> Shares:
        """Shares to whole per cent, so that a page more or less makes no other picture."""
        return tuple((node, round(share, 2)) for node, share in self.shares)


Recorded = tuple[Result, tuple[Pages, ...]]
"""A launch, and the pages of its ranks in one kind and locality."""


@dataclass(frozen=True)
class Panel:
    """The pages of all ranks in one kind and locality, alike in some launches.

    Launches are alike where their pictures are equal; where bytes differ, the panel has the worst.

    Attributes:
        pages: by rank, of the launch with the fewest as asked; empty where it was not measured.
        skipped: why it was not measured, or "".
        launches: the names of those alike.
        of: how many launches of the map have this kind and locality.
        arms: those of the launches alike.
        others: arms of the map with launches that are not alike.
    """

    kind: str
    locality: str
    pages: tuple[Pages, ...]
    skipped: str
    launches: tuple[str, ...]
    of: int
    arms: tuple[str, ...]
    others: tuple[str, ...]

    @property
    def as_asked(self) -> float | None:
        """The share of all ranks' bytes on the nodes asked for; None where none is known."""
        return _share(self.pages, "asked")

    @property
    def local(self) -> float | None:
        """The share of all ranks' bytes on the nodes of their CPUs."""
        return _share(self.pages, "near")

    @property
    def emulated(self) -> bool:
        """Whether ordinary memory emulated the kind."""
        return any(part.emulated for part in self.pages)


@dataclass(frozen=True)
class PageMap:
    """A machine, its ranks and their pages.

    Attributes:
        cpus: by rank.
        rule: what decided which nodes are HBM.
        arms, mpis, launches: the arms, MPIs and names of all launches of the map.
        methods: how the kernel was asked where pages are.
        panels: in the order of kinds and localities; several of one where launches differ.
    """

    ranks: int
    binding: str
    nodes: tuple[Node, ...]
    cpus: tuple[int, ...]
    rule: str
    arms: tuple[str, ...]
    mpis: tuple[str, ...]
    launches: tuple[str, ...]
    methods: tuple[str, ...]
    machine: str
    panels: tuple[Panel, ...]

    def node_of(self, rank: int) -> int:
        """The node of the rank's CPU; -1 where no node has it."""
        return node_of(self.nodes, self.cpus[rank])


def page_maps(launches: Launches) -> tuple[PageMap, ...]:
    """Every map that the launches fill, by rank count and binding; of one, the most launches first.

    Launches without a topology (an older version's) and those of programs that record nothing of
    their pages fill none.
    """
    grouped: dict[Any, list[Result]] = defaultdict(list)
    for launch in filter(_tells, launches):
        asked, nodes = launch.launch, nodes_of(launch)
        shape = tuple((n.id, n.cpus, n.is_hbm, n.distances, n.initiators) for n in nodes)
        cpus = tuple(rank.cpu for rank in _ranks(launch))
        key = (asked.ranks, asked.binding, shape, cpus, launch.machine)
        grouped[key].append(launch)
    order = sorted(grouped, key=lambda key: (key[0], key[1], -len(grouped[key])))
    return tuple(_page_map(grouped[key]) for key in order)


def frame(launches: Launches) -> pd.DataFrame:
    """A row for each rank's pages in each kind and locality that launches of an arm agree on.

    Columns: arm, mpi, ranks, binding, rank, cpu, cpu_node (-1: none has it), kind, locality,
    emulated, asked ("4" or "4, 5"), placed ("4: 1048576; 5: 4096", bytes by node), pages_bytes,
    as_asked and local (shares on the nodes asked for, and of the rank's CPU; None where nothing is
    known), method, launches (of the arm, alike to the byte), of (launches of the arm), names, and
    recorded.COLUMN.
    """
    alike: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    counted = Counter[tuple[Any, ...]]()
    for launch in filter(_tells, launches):
        asked, nodes = launch.launch, nodes_of(launch)
        group = (asked.arm, asked.mpi, asked.ranks, asked.binding)
        counted[group] += 1
        for rank, kind, locality, pages in _every(launch):
            where = (rank.rank, rank.cpu, node_of(nodes, rank.cpu), kind, locality)
            alike[group, where, pages, launch.machine].append(launch.name)
    names = ["arm", "mpi", "ranks", "binding", "rank", "cpu", "cpu_node", "kind", "locality"]
    return pd.DataFrame(
        [
            dict(zip(names, (*group, *where), strict=True))
            | {
                "emulated": pages.emulated,
                "asked": ", ".join(map(str, pages.asked)),
                "placed": "; ".join(f"{node}: {size}" for node, size in pages.placed),
                "pages_bytes": pages.total,
                "as_asked": pages.as_asked,
                "local": pages.local,
                "method": pages.method,
                "launches": len(mine),
                "of": counted[group],
                "names": ", ".join(sorted(mine)),
                recorded.COLUMN: machine,
            }
            for (group, where, pages, machine), mine in alike.items()
        ]
    )


def by_node(panel: Panel) -> dict[int, int]:
    """{node: bytes of all ranks there}."""
    sizes = Counter[int]()
    for part in panel.pages:
        sizes.update(dict(part.placed))
    return sizes


def _tells(launch: Result) -> bool:
    return bool(launch.facts.topology) and any(rank.pools for rank in launch.ranks)


def _page_map(launches: list[Result]) -> PageMap:
    first = launches[0]
    asked, topology = first.launch, first.facts.topology
    panels = _panels(launches)
    return PageMap(
        ranks=asked.ranks,
        binding=asked.binding,
        nodes=nodes_of(first),
        cpus=tuple(rank.cpu for rank in _ranks(first)),
        rule=topology.hbm.rule if topology else "",
        arms=_arms(launches),
        mpis=tuple(sorted({launch.launch.mpi for launch in launches})),
        launches=tuple(launch.name for launch in launches),
        methods=tuple(sorted({pages.method for panel in panels for pages in panel.pages})),
        machine=first.machine,
        panels=panels,
    )


def _panels(launches: list[Result]) -> tuple[Panel, ...]:
    """By kind and locality in the order of the campaign's own words; the most launches first."""
    grouped: dict[tuple[str, str], dict[Any, list[Recorded]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for launch in launches:
        measured: dict[tuple[str, str], list[Pages]] = defaultdict(list)
        for _, kind, locality, pages in _every(launch):
            measured[kind, locality].append(pages)
        for key, by_rank in measured.items():
            alike = tuple((one.asked, one.picture, one.unknown > 0) for one in by_rank)
            grouped[key][alike].append((launch, tuple(by_rank)))
        for key, reason in _skipped(launch, set(measured)).items():
            grouped[key][reason].append((launch, ()))
    return tuple(
        panel
        for key, variants in sorted(grouped.items(), key=lambda group: _turn(*group[0]))
        for panel in _variants(*key, variants)
    )


def _every(launch: Result) -> Iterator[tuple[Rank, str, str, Pages]]:
    """Rank, kind, locality and pages of all buffers of a launch."""
    nodes = nodes_of(launch)
    for rank in _ranks(launch):
        near = local_nodes(nodes, node_of(nodes, rank.cpu))
        for pool in rank.pools:
            yield rank, pool.kind, pool.locality, _pages(pool, near)


def _variants(
    kind: str, locality: str, variants: Mapping[Any, Sequence[Recorded]]
) -> Iterator[Panel]:
    """A panel for each set of launches that are alike: of these, the one with the worst pages."""
    of = sum(map(len, variants.values()))
    for alike, records in sorted(variants.items(), key=lambda v: -len(v[1])):
        mine = [launch for launch, _ in records]
        rest = [one for other, v in variants.items() if other != alike for one, _ in v]
        made = [
            Panel(
                kind,
                locality,
                pages,
                alike if isinstance(alike, str) else "",
                tuple(launch.name for launch in mine),
                of,
                _arms(mine),
                _arms(rest),
            )
            for _, pages in records
        ]
        yield min(made, key=lambda panel: (panel.as_asked or 0, panel.local or 0))


def _share(pages: Sequence[Pages], nodes: str) -> float | None:
    """The share of all bytes on the nodes in that attribute; None without any bytes."""
    total = sum(part.total for part in pages)
    there = [size for part in pages for node, size in part.placed if node in getattr(part, nodes)]
    return sum(there) / total if total else None


def _turn(kind: str, locality: str) -> tuple[int, str, str]:
    return (("regular", "hbw").index(kind) if kind in ("regular", "hbw") else 2, kind, locality)


def _skipped(launch: Result, measured: set[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Why kinds and localities that a launch was asked for have no pages in it."""
    reasons: dict[tuple[str, str], str] = {}
    for cell in launch.cells:
        key = (cell.kind, cell.locality)
        if cell.skipped and key not in measured:
            reasons.setdefault(key, cell.skipped.removeprefix(f"{cell.kind}: "))
    return reasons


def _pages(pool: Pool, near: tuple[int, ...]) -> Pages:
    placed = tuple(sorted((int(node), size) for node, size in pool.placement.items()))
    unknown = max(0, (pool.bytes or 0) - sum(size for _, size in placed))
    return Pages(pool.nodes, near, placed, unknown, pool.placement_method, pool.emulated)


def _ranks(launch: Result) -> list[Rank]:
    return sorted(launch.ranks, key=lambda rank: rank.rank)


def _arms(launches: Iterable[Result]) -> tuple[str, ...]:
    return tuple(sorted({launch.launch.arm for launch in launches}, key=arm_key))
