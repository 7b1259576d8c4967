"""Everything that figures, tables and sentences are made of, computed once.

Knows what a campaign asked for, what it found and what it could not measure.
"""

import math
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

import pandas as pd

from experiments.analysis import confounders, data_path, pace, page_placement, unmeasured
from experiments.analysis.container_steps import steps as steps_of
from experiments.analysis.data_path import DataPaths
from experiments.analysis.page_placement import PageMap
from experiments.analysis.ratios import (
    Floors,
    company_ratio,
    floors_of,
    group_floor,
    group_ratio,
    jointly,
    paired_ratio,
    verdicts,
)
from experiments.analysis.reading import Campaign
from experiments.analysis.selection import at, levels
from experiments.analysis.statistics import CONTAINER, FACTORS, Verdict, over_launches
from experiments.analysis.wires import COLUMNS as OF_WIRES
from experiments.analysis.wires import wires as wires_of
from experiments.baselines.launches import COUNTERPARTS
from experiments.machine.facts import NOT_EMULATED
from experiments.model.arms import HOST, TWIN, USERLAND, arm_key, in_container
from experiments.model.contender_names import GLOO, TORCH
from experiments.model.workloads import COMPUTING, WORKLOADS
from experiments.results import recorded

REFERENCE = "imb"
"""The arm, and its transport, of the benchmark in C: on the host, and nothing to do with Python."""
BASELINES = tuple(COUNTERPARTS)
"""The arms of Python's own means, without an MPI: on the host."""
BASELINE = "regular"
OURS = "direct"
BETWEEN_HOSTS = "hierarchical"
PLACEMENTS = (("binding", "spread", "packed"), ("locality", "remote", "local"))
"""Factor of a placement ratio, the level in its numerator and the one in its denominator."""


@dataclass(frozen=True)
class Findings:
    """What a campaign found. All times in seconds; ratios of times paired within a block.

    A block has one binding: ratios of bindings pair the n-th block of one with that of the other.

    Every ratio has a `verdict` (a Verdict of statistics.py, as text) and the noise `floor` that
    it was held against; joint_low and joint_high are the ends of an interval that holds for all
    ratios of the frame at once (ratios.jointly). Every row names the emulated machine that it was
    measured on (column recorded.COLUMN).

    Attributes:
        times: statistics.over_launches of every arm but the A/A twin.
        wires: times over the least that links between hosts allow (wires.wires).
        speedups: regular over each other kind (column `kind`); above 1 that kind is faster.
        placements: spread over packed and remote over local (column `factor`); above 1 is slower.
        containers: each container arm (columns `arm`, environment, profile, layout) over the
            host; above 1 is slower.
        isolation: each container arm over the arm userland, the same files without a container.
        tails: the same of p99, what the slowest of 100 operations takes; over the host where there
            is no arm userland.
        groups: containers once more, the median over all sizes of an operation and transport
            (ratios.group_ratio), beside the interval of the size that may cost most (widest_bytes,
            widest_low, widest_high).
        steps, whole_steps: what each step from the host to a container costs (columns `step`,
            `above`, `below`; see steps.py), by size and, as `groups`, for all sizes.
        transports: each transport (column `transport`) over `ours`; above 1 is slower.
        gloo: gloo over this library's backend of torch.distributed, where neither is `ours`.
        python: the host's MPI calls from Python over those of the benchmark in C.
        baselines: Python's own means (column `transport`) over the host's MPI calls that
            they replace in the turns; above 1 is slower.
        twins: the host again over the host.
        floors: the noise floor by MPI and band of sizes.
        blocks: paired blocks that the campaign asked for.
        conditions: what a reader must know beside any ratio (validity_warnings.conditions).
        interpreters: {environment: version of Python} where they differ; else empty.
        other_files: {environment: why its files are other inodes than those in Docker}.
        own_files: {MPI: why launches of the reference have no fresh copies of their files}.
        straying_copies: a row for each arm in which plain copies take another time than on the
            host (confounders.straying_copies).
        data_paths: how the data path of each MPI and arm differs from the host's.
        unmeasured: {level asked for and nowhere measured: why}, such as {"docker": "no engine"}.
        machine: why no time here means anything: the emulated machine that it was measured on, in
            one sentence, or "".
        page_maps: where every rank and every page was.
        pages: a row for each rank's pages (page_placement.frame).
        paces: how fast each launch was beside the others of its arm (pace.paces).
        company: the reference arm beside arms that sleep over the same arm alone
            (ratios.company_ratio).
    """

    times: pd.DataFrame
    speedups: pd.DataFrame
    placements: pd.DataFrame
    containers: pd.DataFrame
    isolation: pd.DataFrame
    tails: pd.DataFrame
    groups: pd.DataFrame
    steps: pd.DataFrame
    whole_steps: pd.DataFrame
    transports: pd.DataFrame
    gloo: pd.DataFrame
    python: pd.DataFrame
    baselines: pd.DataFrame
    twins: pd.DataFrame
    floors: Floors
    blocks: int
    unmeasured: dict[str, str]
    interpreters: dict[str, str] = field(default_factory=dict)
    other_files: dict[str, str] = field(default_factory=dict)
    own_files: dict[str, str] = field(default_factory=dict)
    straying_copies: pd.DataFrame = field(default_factory=pd.DataFrame)
    data_paths: DataPaths = field(default_factory=DataPaths)
    machine: str = ""
    wires: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(OF_WIRES)))
    page_maps: tuple[PageMap, ...] = ()
    pages: pd.DataFrame = field(default_factory=pd.DataFrame)
    paces: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=list(pace.COLUMNS)))
    company: pd.DataFrame = field(default_factory=pd.DataFrame)
    conditions: tuple[str, ...] = ()

    @property
    def workloads(self) -> pd.DataFrame:
        """The rows of `times` that compute as well; `share` of a step is communication."""
        steps = self.times[self.times["operation"].isin(COMPUTING)]
        return steps.assign(share=1 - steps["bound_s"] / steps["median_s"])

    @property
    def systems(self) -> pd.DataFrame:
        """The rows of `transports` that are workloads without a computation beside them."""
        if self.transports.empty:
            return self.transports
        systems = [name for name in WORKLOADS if name not in COMPUTING]
        return self.transports[self.transports["operation"].isin(systems)]

    @cached_property
    def ours(self) -> str:
        """The transport that others are held against."""
        return _ours(self.times)

    @property
    def floor(self) -> float:
        """The largest noise floor of any band of sizes, 0.03 for 3 %; NaN where none is known."""
        return self.floors.largest


def find(campaign: Campaign) -> Findings:
    """All of a campaign's findings."""
    found = from_cells(
        campaign.cells,
        blocks=campaign.experiment.launches.blocks,
        missing=unmeasured.levels(campaign),
    )
    return replace(
        found,
        interpreters=confounders.interpreters(campaign.launches),
        other_files=confounders.other_files(campaign.header),
        own_files=confounders.own_files(campaign.header),
        straying_copies=confounders.straying_copies(
            campaign.controls, container_arms(campaign.controls), HOST
        ),
        data_paths=data_path.compare(campaign.launches),
        page_maps=page_placement.page_maps(campaign.launches),
        pages=page_placement.frame(campaign.launches),
        paces=pace.paces(campaign.launches, campaign.cells),
        company=company_ratio(campaign.cells, campaign.alone),
        conditions=campaign.conditions,
    )


def from_cells(cells: pd.DataFrame, *, blocks: int, missing: dict[str, str]) -> Findings:
    """What launch medians alone show (columns as experiments.analysis.reading.COLUMNS)."""
    arms = cells[cells["arm"] != TWIN]
    ours = arms[~arms["arm"].isin((REFERENCE, *BASELINES))]
    contained = container_arms(ours)
    by = [name for name in FACTORS if name not in (*CONTAINER, "bytes")]

    @cache
    def paired(above: str, below: str, value: str = "median_s") -> pd.DataFrame:
        return paired_ratio(cells, "arm", above, below, value)

    noise, of_groups = floors_of(paired(TWIN, HOST)), group_floor(paired(TWIN, HOST), by)

    def over(below: str, value: str = "median_s") -> list[pd.DataFrame]:
        return [
            paired(arm, below, value).assign(**_container(ours, arm))
            for arm in contained
            if arm != below
        ]

    def grouped(above: str, below: str) -> pd.DataFrame:
        found = group_ratio(paired(above, below), by)
        return found.assign(**_container(ours, above), floor=of_groups)

    base = USERLAND if USERLAND in contained else HOST
    steps = [((each.above, each.below), vars(each)) for each in steps_of(set(cells["arm"]))]
    own = _ours(ours)
    others = [each for each in levels(ours, "transport") if each != own]
    machines = recorded.machines(cells[recorded.COLUMN])

    def judged(frames: list[pd.DataFrame], held: Floors = noise) -> pd.DataFrame:
        return _on(machines, _judged(frames, held))

    containers, isolation = judged(over(HOST)), judged(over(USERLAND))
    of_steps = judged([paired(*sides).assign(**labels) for sides, labels in steps])
    return Findings(
        times=_on(machines, over_launches(arms)),
        speedups=judged(_speedups(ours)),
        placements=judged(
            [
                paired_ratio(ours, factor, worse, better).assign(factor=factor)
                for factor, worse, better in PLACEMENTS
            ]
        ),
        containers=containers,
        isolation=isolation,
        tails=judged(over(base, "p99_s"), floors_of(paired(TWIN, HOST, "p99_s"))),
        groups=_with_widest(judged([grouped(arm, HOST) for arm in contained]), containers),
        steps=of_steps,
        whole_steps=_with_widest(
            judged([grouped(*sides).assign(**labels) for sides, labels in steps]), of_steps
        ),
        transports=judged(_transports(ours, others, own)),
        gloo=judged(_transports(ours, [GLOO] if own != TORCH else [], TORCH)),
        python=judged([_python(arms)]),
        baselines=judged(_baselines(arms)),
        twins=judged([paired(TWIN, HOST)]),
        floors=noise,
        blocks=blocks,
        unmeasured=missing,
        machine=recorded.meaning(machines),
        wires=_on(machines, wires_of(cells)),
    )


def _speedups(ours: pd.DataFrame) -> list[pd.DataFrame]:
    """Regular memory over each other kind, and whether ordinary memory emulated that kind."""
    emulated = set(ours.loc[ours["emulated"].astype(bool), "kind"])
    return [
        paired_ratio(ours, "kind", BASELINE, kind).assign(kind=kind, emulated=kind in emulated)
        for kind in levels(ours, "kind")
        if kind != BASELINE
    ]


def _transports(ours: pd.DataFrame, others: list[str], own: str) -> list[pd.DataFrame]:
    """Each of the other transports over one of this library's."""
    return [
        paired_ratio(ours, "transport", transport, own).assign(transport=transport)
        for transport in others
    ]


def _ours(cells: pd.DataFrame) -> str:
    """This library's among the transports of a campaign: a workload's own, or the first."""
    operations, present = set(cells["operation"].unique()), set(cells["transport"].unique())
    for name in WORKLOADS:
        if name in operations:
            return WORKLOADS[name].contenders[0]
    return next((name for name in (OURS, BETWEEN_HOSTS, TORCH) if name in present), OURS)


def _on(machines: list[str], frame: pd.DataFrame) -> pd.DataFrame:
    """The rows with the emulated machines of the campaign, which has no real one beside them."""
    return frame.assign(**{recorded.COLUMN: ", ".join(machines) or NOT_EMULATED})


def container_arms(cells: pd.DataFrame) -> list[str]:
    """The arms that ran in a container, in the order in which figures show them."""
    return sorted(filter(in_container, set(cells["arm"])), key=arm_key)


def absent_containers(missing: dict[str, str]) -> list[str]:
    """The containers among the levels that were not measured."""
    return [level for level in missing if in_container(level.replace(":", "-"))]


def _container(cells: pd.DataFrame, arm: str) -> dict[str, str]:
    first = cells[cells["arm"] == arm].iloc[0]
    return {key: str(first[key]) for key in ("arm", *CONTAINER)}


def _python(arms: pd.DataFrame) -> pd.DataFrame:
    """The host's transport mpi over the reference's, which calls the same MPI from C."""
    reference = at(arms, arm=REFERENCE).assign(transport="mpi")
    host = at(arms, arm=HOST, transport="mpi")
    return paired_ratio(pd.concat([host, reference]), "arm", HOST, REFERENCE)


def _baselines(arms: pd.DataFrame) -> list[pd.DataFrame]:
    """Each of Python's own means over the host's calls that it replaces in the turns."""
    found = []
    for arm, ways in COUNTERPARTS.items():
        for transport, own in ways.items():
            mine = at(arms, arm=arm, transport=own).assign(transport=transport)
            both = pd.concat([at(arms, arm=HOST, transport=transport), mine])
            found.append(paired_ratio(both, "arm", arm, HOST).assign(arm=arm, transport=own))
    return found


def _judged(frames: list[pd.DataFrame], held: Floors) -> pd.DataFrame:
    """One frame, with `floor`, where it has none, and `verdict`."""
    filled = [frame for frame in frames if not frame.empty]
    if not filled:
        return frames[0] if frames else pd.DataFrame()
    frame = pd.concat(filled, ignore_index=True)
    if "floor" not in frame:
        cells = list(zip(frame["mpi"], frame["bytes"], strict=True))
        floors = {(mpi, size): held.of(str(mpi), int(size)) for mpi, size in set(cells)}
        frame = frame.assign(floor=[floors[cell] for cell in cells])
    frame = jointly(frame)
    return frame.assign(verdict=verdicts(frame))


def _with_widest(groups: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    """Groups with the size that may cost most among their cells, and the ends of its interval.

    The median over sizes hides a cost at one of them: a group is as good as equal only where each
    of its cells is.
    """
    if groups.empty:
        return groups
    names = ("arm", *FACTORS, "step", "above", "below")
    keys = [key for key in names if key in groups and key in cells]
    reach = cells[["low", "high"]].astype(float).map(lambda end: abs(math.log(end))).max(axis=1)
    first = cells.loc[reach.sort_values(ascending=False, kind="stable").index]
    ends = {"bytes": "widest_bytes", "low": "widest_low", "high": "widest_high"}
    widest = first.drop_duplicates(keys)[[*keys, *ends]].rename(columns=ends)
    equal = (cells["verdict"] == Verdict.EQUIVALENT).groupby([cells[key] for key in keys]).all()
    found = groups.merge(widest, on=keys, how="left").merge(
        equal.rename("equal").reset_index(), on=keys, how="left"
    )
    hidden = (found["verdict"] == Verdict.EQUIVALENT) & ~found["equal"].astype(bool)
    return found.assign(verdict=found["verdict"].mask(hidden, str(Verdict.BOUNDED))).drop(
        columns="equal"
    )
