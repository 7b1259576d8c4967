"""A campaign: what its folder holds, and the tables that figures, tables and sentences are made of.

A table is computed when it is first asked for. reading.py reads the folder.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.analysis import data_path, page_placement
from experiments.analysis.confounders import Confounders, confounders
from experiments.analysis.container_steps import steps as steps_of
from experiments.analysis.data_path import DataPaths
from experiments.analysis.page_placement import PageMap
from experiments.analysis.ratios import (
    Floors,
    floors_of,
    group_floor,
    group_ratio,
    jointly,
    paired_ratio,
    verdicts,
)
from experiments.analysis.selection import at, container_arms, levels
from experiments.analysis.statistics import CONTAINER, FACTORS, Verdict, over_launches
from experiments.baselines.launches import COUNTERPARTS
from experiments.model.arms import HOST, TWIN, USERLAND, in_container
from experiments.model.contender_names import TORCH
from experiments.model.environment import NOT_EMULATED
from experiments.model.experiment import Experiment
from experiments.model.workloads import COMPUTING, WORKLOADS
from experiments.results import recorded
from experiments.results.result import Result

REFERENCE = "imb"
"""The arm, and its transport, of the benchmark in C: on the host, and nothing to do with Python."""
BASELINES = tuple(COUNTERPARTS)
"""The arms of Python's own means, without an MPI: on the host."""
BASELINE = "regular"
OURS = "direct"
BETWEEN_HOSTS = "hierarchical"
PLACEMENTS = (("binding", "spread", "packed"), ("locality", "remote", "local"))
"""Factor of a placement ratio, the level in its numerator and the one in its denominator."""
UNFINISHED = "no launch of it is finished"
_BY = [name for name in FACTORS if name not in (*CONTAINER, "bytes")]
"""What names a group of cells that differ in their size alone."""


@dataclass(frozen=True)
class Campaign:
    """A results folder, read. All times in seconds; ratios of times are paired within a block.

    A block has one binding: ratios of bindings pair the n-th block of one with that of the other.

    Every ratio has a `verdict` (a Verdict of statistics.py, as text) and the noise `floor` that
    it was held against; joint_low and joint_high are the ends of an interval that holds for all
    ratios of the frame at once (ratios.jointly). Every row names the emulated machine that it was
    measured on (column recorded.COLUMN).

    Attributes:
        header: campaign.json.
        launches: each finished launch, in the order of the file names.
        cells: one row per launch and cell; reading.COLUMNS; times in seconds, bytes per rank.
            `turns` are the medians of its turns, `company` the launches that it took them with;
            `barrier` is what each interval began with, "" where that is not stored; `skew_s` is the
            median time from the first rank's begin to the last one's, NaN where none is stored;
            `bound_s` is the least time of a collective, and the computation alone of a workload;
            `wire_s` is the least time on links of a known rate, and `carried` the bytes of the
            busiest link over the least that it can carry, both NaN where ranks are on one host;
            `contest` numbers the cells of a launch that took turns with each other.
        alone: the same of the reference arm's launch without company, of which `cells` has nothing;
            empty where a campaign has none.
        controls: the same of plain copies: each rank copies its own buffer, no MPI takes part.
        warnings: one sentence each; what a reader must know before believing a figure.
        conditions: those that a reader must know beside any ratio.
    """

    folder: Path
    name: str
    experiment: Experiment
    header: dict[str, Any]
    launches: list[Result]
    cells: pd.DataFrame
    controls: pd.DataFrame
    alone: pd.DataFrame
    warnings: list[str]
    conditions: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        """Paired blocks that the campaign asked for."""
        return self.experiment.launches.blocks

    @cached_property
    def unmeasured(self) -> dict[str, str]:
        """{level asked for and nowhere measured: why}, such as {"docker": "no engine"}; a rank
        count is written "16 ranks"."""
        launches, factors = self.experiment.launches, self.experiment.factors
        reasons: dict[str, str] = {}
        for cell in (cell for launch in self.launches for cell in launch.cells if cell.skipped):
            for level in (cell.operation, cell.transport, cell.kind, cell.locality):
                # many reasons begin with the level
                reasons.setdefault(level, cell.skipped.removeprefix(f"{level}: "))
        asked: dict[str, Iterable[str]] = {
            "environment": map(str, launches.environments),
            "mpi": launches.mpis,
            "binding": launches.bindings,
            "operation": factors.operations,
            "transport": factors.transports,
            "kind": factors.kinds,
            "locality": factors.localities,
        }
        present = set(self.cells["environment"]) | set(self.cells["arm"])
        missing = (line.split(": ", 1) for line in self.header["missing"] if ": " in line)
        lacking = {name: why for name, why in missing if name not in present}
        for column, wanted in asked.items():
            measured = set(self.cells[column])
            for level in (level for level in wanted if level not in measured):
                lacking.setdefault(level, reasons.get(level, UNFINISHED))
        few = [ranks for ranks in launches.ranks if ranks not in set(self.cells["ranks"])]
        return lacking | {f"{ranks} ranks": UNFINISHED for ranks in few}

    @cached_property
    def machine(self) -> str:
        """Why no time here means anything: the emulated machine that it was measured on, in one
        sentence; "" of a real one."""
        return recorded.meaning(self._machines)

    @cached_property
    def page_maps(self) -> tuple[PageMap, ...]:
        """Where every rank and every page was."""
        return page_placement.page_maps(self.launches)

    @cached_property
    def data_paths(self) -> DataPaths:
        """How the data path of each MPI and arm differs from the host's."""
        return data_path.compare(self.launches)

    @cached_property
    def confounders(self) -> Confounders:
        """What may be an arm's whole effect though it is not the container."""
        return confounders(self.launches, self.header, self.controls)

    @cached_property
    def ours(self) -> str:
        """The transport of this library that others are held against: a workload's own, or the
        first that there is."""
        operations, present = (set(self._own[name]) for name in ("operation", "transport"))
        for name in WORKLOADS:
            if name in operations:
                return WORKLOADS[name].contenders[0]
        return next((name for name in (OURS, BETWEEN_HOSTS, TORCH) if name in present), OURS)

    @cached_property
    def times(self) -> pd.DataFrame:
        """statistics.over_launches of every arm but the A/A twin."""
        return self._of_machine(over_launches(self._arms))

    @cached_property
    def workloads(self) -> pd.DataFrame:
        """The rows of `times` that compute as well; `share` of a step is communication."""
        steps = self.times[self.times["operation"].isin(COMPUTING)]
        return steps.assign(share=1 - steps["bound_s"] / steps["median_s"])

    @cached_property
    def wires(self) -> pd.DataFrame:
        """Time over the least possible, of each cell between hosts with links of a known rate.

        One row per arm and FACTORS: `over`, the median over launches of the launch's median over
        the least time of its links, with the ends of its interval; `carried`, the bytes of the
        busiest link over the least that it can carry, median over launches; launches.
        """
        keys = ["arm", *FACTORS]
        frame = self._arms[self._arms["wire_s"].notna()]
        carried = frame.groupby(keys, sort=True, observed=True)["carried"].median().reset_index()
        ratios = frame["median_s"] / frame["wire_s"]  # in the place of seconds, for their intervals
        near = over_launches(frame.assign(median_s=ratios)).merge(carried, on=keys)
        near = near.rename(columns={"median_s": "over", "low_s": "low", "high_s": "high"})
        return self._of_machine(near[[*keys, "over", "low", "high", "carried", "launches"]])

    @cached_property
    def speedups(self) -> pd.DataFrame:
        """Regular over each other kind (column `kind`), and whether ordinary memory emulated that;
        above 1 that kind is faster."""
        own = self._own
        emulated = set(own.loc[own["emulated"].astype(bool), "kind"])
        return self._judged(
            paired_ratio(own, "kind", BASELINE, kind).assign(kind=kind, emulated=kind in emulated)
            for kind in levels(own, "kind")
            if kind != BASELINE
        )

    @cached_property
    def placements(self) -> pd.DataFrame:
        """Spread over packed and remote over local (column `factor`); above 1 is slower."""
        return self._judged(
            paired_ratio(self._own, factor, worse, better).assign(factor=factor)
            for factor, worse, better in PLACEMENTS
        )

    def beside(self, own: str, others: Iterable[str]) -> pd.DataFrame:
        """Each of the other transports (column `transport`) over `own`; above 1 is slower."""
        return self._judged(
            paired_ratio(self._own, "transport", other, own).assign(transport=other)
            for other in others
        )

    @cached_property
    def transports(self) -> pd.DataFrame:
        """Each other transport over `ours`."""
        others = levels(self._own, "transport")
        return self.beside(self.ours, (name for name in others if name != self.ours))

    @cached_property
    def systems(self) -> pd.DataFrame:
        """The rows of `transports` that are workloads without a computation beside them."""
        if self.transports.empty:
            return self.transports
        systems = [name for name in WORKLOADS if name not in COMPUTING]
        return self.transports[self.transports["operation"].isin(systems)]

    @cached_property
    def containers(self) -> pd.DataFrame:
        """Each container arm (columns `arm`, environment, profile, layout) over the host; above 1
        is slower."""
        return self._judged(self._contained(HOST))

    @cached_property
    def isolation(self) -> pd.DataFrame:
        """Each container arm over the arm userland, the same files without a container."""
        return self._judged(self._contained(USERLAND))

    @cached_property
    def tails(self) -> pd.DataFrame:
        """The same of p99, what the slowest of 100 operations takes; over the host where there is
        no arm userland."""
        base = USERLAND if USERLAND in container_arms(self._own) else HOST
        floors = floors_of(self._over(TWIN, HOST, "p99_s"))
        return self._judged(self._contained(base, "p99_s"), floors)

    @cached_property
    def groups(self) -> pd.DataFrame:
        """Containers once more, the median over all sizes of an operation and transport
        (ratios.group_ratio), beside the interval of the size that may cost most (widest_bytes,
        widest_low, widest_high)."""
        arms = container_arms(self._own)
        return _with_widest(self._judged(self._grouped(arm, HOST) for arm in arms), self.containers)

    @cached_property
    def steps(self) -> pd.DataFrame:
        """What each step from the host to a container costs (columns `step`, `above`, `below`; see
        container_steps.py), by size."""
        return self._judged(
            self._over(step.above, step.below).assign(**vars(step))
            for step in steps_of(set(self.cells["arm"]))
        )

    @cached_property
    def whole_steps(self) -> pd.DataFrame:
        """The steps for all sizes, as `groups`."""
        frames = (
            self._grouped(step.above, step.below).assign(**vars(step))
            for step in steps_of(set(self.cells["arm"]))
        )
        return _with_widest(self._judged(frames), self.steps)

    @cached_property
    def python(self) -> pd.DataFrame:
        """The host's MPI calls from Python over those of the benchmark in C."""
        reference = at(self._arms, arm=REFERENCE).assign(transport="mpi")
        host = at(self._arms, arm=HOST, transport="mpi")
        return self._judged([paired_ratio(pd.concat([host, reference]), "arm", HOST, REFERENCE)])

    @cached_property
    def baselines(self) -> pd.DataFrame:
        """Python's own means (column `transport`) over the host's MPI calls that they replace in
        the turns; above 1 is slower."""
        frames = []
        for arm, counterparts in COUNTERPARTS.items():
            for transport, own in counterparts.items():
                mine = at(self._arms, arm=arm, transport=own).assign(transport=transport)
                both = pd.concat([at(self._arms, arm=HOST, transport=transport), mine])
                ratios = paired_ratio(both, "arm", arm, HOST)
                frames.append(ratios.assign(arm=arm, transport=own))
        return self._judged(frames)

    @cached_property
    def twins(self) -> pd.DataFrame:
        """The host again over the host."""
        return self._judged([self._over(TWIN, HOST)])

    @cached_property
    def floors(self) -> Floors:
        """The noise floor by MPI and band of sizes."""
        return floors_of(self._over(TWIN, HOST))

    @cached_property
    def floor(self) -> float:
        """The largest noise floor of any band of sizes, 0.03 for 3 %; NaN where none is known."""
        return self.floors.largest

    @cached_property
    def _arms(self) -> pd.DataFrame:
        return self.cells[self.cells["arm"] != TWIN]

    @cached_property
    def _own(self) -> pd.DataFrame:
        """The cells of this project's harness."""
        return self._arms[~self._arms["arm"].isin((REFERENCE, *BASELINES))]

    @cached_property
    def _machines(self) -> list[str]:
        return recorded.machines(self.cells[recorded.COLUMN])

    def _of_machine(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The rows with the emulated machines of the campaign: none is real, or all."""
        return frame.assign(**{recorded.COLUMN: ", ".join(self._machines) or NOT_EMULATED})

    @cached_property
    def _known(self) -> dict[tuple[str, str, str], pd.DataFrame]:
        """Ratios of arms that were computed already."""
        return {}

    def _over(self, above: str, below: str, value: str = "median_s") -> pd.DataFrame:
        key = (above, below, value)
        if key not in self._known:
            self._known[key] = paired_ratio(self.cells, "arm", *key)
        return self._known[key]

    def _contained(self, below: str, value: str = "median_s") -> list[pd.DataFrame]:
        arms = [arm for arm in container_arms(self._own) if arm != below]
        return [self._over(arm, below, value).assign(**self._labels(arm)) for arm in arms]

    def _grouped(self, above: str, below: str) -> pd.DataFrame:
        groups = group_ratio(self._over(above, below), _BY)
        return groups.assign(**self._labels(above), floor=self._group_floor)

    @cached_property
    def _group_floor(self) -> float:
        return group_floor(self._over(TWIN, HOST), _BY)

    def _labels(self, arm: str) -> dict[str, str]:
        first = self._own[self._own["arm"] == arm].iloc[0]
        return {key: str(first[key]) for key in ("arm", *CONTAINER)}

    def _judged(self, ratios: Iterable[pd.DataFrame], floors: Floors | None = None) -> pd.DataFrame:
        """One frame, with `floor`, where it has none, and `verdict`.

        Args:
            floors: of medians where they are left out.
        """
        frames, floors = list(ratios), floors or self.floors
        filled = [frame for frame in frames if not frame.empty]
        if not filled:
            return self._of_machine(frames[0] if frames else pd.DataFrame())
        frame = pd.concat(filled, ignore_index=True)
        if "floor" not in frame:
            cells = list(zip(frame["mpi"], frame["bytes"], strict=True))
            known = {(mpi, size): floors.of(str(mpi), int(size)) for mpi, size in set(cells)}
            frame = frame.assign(floor=[known[cell] for cell in cells])
        frame = jointly(frame)
        return self._of_machine(frame.assign(verdict=verdicts(frame)))


def absent_containers(missing: Mapping[str, str]) -> list[str]:
    """The containers among the levels that were not measured."""
    return [level for level in missing if in_container(level.replace(":", "-"))]


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
    joined = groups.merge(widest, on=keys, how="left").merge(
        equal.rename("equal").reset_index(), on=keys, how="left"
    )
    hidden = (joined["verdict"] == Verdict.EQUIVALENT) & ~joined["equal"].astype(bool)
    return joined.assign(verdict=joined["verdict"].mask(hidden, str(Verdict.BOUNDED))).drop(
        columns="equal"
    )
