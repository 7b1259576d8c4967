"""Two campaigns side by side: what differs about them first, then their results. Pure.

Launches of different campaigns share no block, so nothing here is paired: a slow hour of the
machine falls on one side only, and no interval knows of it.
"""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.metadata_diff import flatten
from experiments.analysis.ratios import Floors, floors
from experiments.analysis.statistics import FACTORS, median_interval, unpaired_ratio, verdict
from experiments.model.arms import HOST, TWIN
from experiments.results import recorded
from experiments.results.result import Result
from experiments.results.store import ResultsError

KEYS = ("arm", *FACTORS)
"""What names a cell of a campaign, so that the other's can be found."""
ALWAYS_OTHER = ("id", "began", "schedule", "format", "machine", "missing")
"""Keys of campaign.json that differ between any two campaigns, or that the launches record."""
PASSING = ("load", "ipc", "mnt", "net", "pid", "user", "uts")
"""Last parts of what launches recorded that always differ; the load has words of its own."""
SECTIONS = ("versions", "hashes", "machine", "datapath")
"""Tables of a launch's environment, in the order in which their differences are listed."""
ABSENT = "not recorded"


@dataclass(frozen=True)
class Difference:
    """Something that is not the same in both campaigns; where it varies, all its values."""

    what: str
    first: str
    second: str


@dataclass(frozen=True)
class Comparison:
    """Two campaigns side by side.

    Attributes:
        differences: what differs about them, in the order in which a reader should ask.
        cells: of every arm but the A/A twin: KEYS, first_s and second_s (medians over launches,
            with first_low_s ...), ratio of the second over the first with low and high, launches
            of each side, and the verdict.
        floors: the largest noise floor of each; a cell is held against those of its MPI and size.
        left_out: why cells of one or the other are not among `cells`, one sentence each.
        warning: why no time here means anything: an emulated machine; else "".
    """

    names: tuple[str, str]
    differences: list[Difference]
    cells: pd.DataFrame
    floors: tuple[float, float]
    left_out: list[str]
    warning: str = ""


def compare(first: Campaign, second: Campaign, other_mpi: bool = False) -> Comparison:
    """The second campaign over the first.

    Args:
        other_mpi: compare although the MPIs differ; where each campaign holds one MPI only, cells
            are then matched across them.

    Raises:
        ResultsError: they hold different MPIs, or share no cell.
    """
    differing = _mpis_apart(first, second)
    if differing and not other_mpi:
        raise ResultsError(
            f"the campaigns {first.folder} and {second.folder} were measured with different MPIs "
            f"({'; '.join(differing)}), so a difference may be the MPI's; to compare them "
            "nevertheless pass --other-mpi"
        )
    ours, theirs = (side.cells[side.cells["arm"] != TWIN] for side in (first, second))
    if other_mpi:
        ours, theirs = _across_mpis(ours, theirs)
    noise = floors(first.cells), floors(second.cells)
    compared, left_out = _results(ours, theirs, noise)
    if compared.empty:
        raise ResultsError(
            f"the campaigns {first.folder} and {second.folder} share no cell: "
            f"{_first_lack(ours, theirs)}; measure one with the other's settings: ./inv run"
        )
    machines = [launch.machine for launch in (*first.launches, *second.launches)]
    return Comparison(
        (str(first.folder), str(second.folder)),
        apart(first, second),
        compared,
        (noise[0].largest, noise[1].largest),
        left_out,
        recorded.meaning(machines),
    )


def apart(first: Campaign, second: Campaign) -> list[Difference]:
    """What differs: versions, code, machine, data path; then images, revision and settings.

    Of launches, those of arms and MPIs that both campaigns have.
    """
    arms = [{_arm_and_mpi(launch) for launch in side.launches} for side in (first, second)]
    shared = arms[0] & arms[1] or arms[0] | arms[1]
    sides = [_described(side, shared) for side in (first, second)]
    return [difference for pair in zip(*sides, strict=True) for difference in _unequal(*pair)]


def _described(side: Campaign, shared: set[tuple[str, str]]) -> list[dict[str, str]]:
    """Tables of what is compared, in their order."""
    facts = _recorded(side.launches, shared)
    return [
        *({key: facts[key] for key in facts if key.split(".")[0] == table} for table in SECTIONS),
        {"NUMA nodes": _nodes(side.launches)},
        _header(side.header),
        {"load average": _loads(side.launches)},
    ]


def _unequal(first: Mapping[str, str], second: Mapping[str, str]) -> list[Difference]:
    keys = sorted({*first, *second})
    pairs = ((key, first.get(key, ABSENT), second.get(key, ABSENT)) for key in keys)
    return [Difference(*pair) for pair in pairs if pair[1] != pair[2]]


def _arm_and_mpi(launch: Result) -> tuple[str, str]:
    """Arm and MPI; the A/A twin is its arm once more."""
    asked = launch.launch
    return HOST if asked.arm == TWIN else asked.arm, asked.mpi


def _recorded(launches: Iterable[Result], wanted: set[tuple[str, str]]) -> dict[str, str]:
    """{key: value} of what the launches of wanted arms and MPIs recorded.

    A value that all of them share has no name beside it; others name their arms and MPIs.
    """
    seen: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for launch in launches:
        if _arm_and_mpi(launch) not in wanted:
            continue
        for key, value in flatten(launch.facts.recorded).items():
            if key.rsplit(".", 1)[-1] not in PASSING:
                seen.setdefault(key, {}).setdefault(value, set()).add(_arm_and_mpi(launch))
    return {
        key: next(iter(values))
        if len(values) == 1
        else "; ".join(f"{text} ({_named(values[text], wanted)})" for text in sorted(values))
        for key, values in sorted(seen.items())
    }


def _named(some: set[tuple[str, str]], every: set[tuple[str, str]]) -> str:
    """Whole MPIs by their names, then whole arms, then what is left of both."""
    names: list[str] = []
    left = set(some)
    for place in (1, 0):
        for name in sorted({pair[place] for pair in left}):
            whole = {pair for pair in every if pair[place] == name}
            if whole <= some and whole & left:
                names.append(name)
                left -= whole
    return ", ".join([*names, *(f"{arm} with {mpi}" for arm, mpi in sorted(left))])


def _loads(launches: Iterable[Result]) -> str:
    """The span of the one-minute load averages that the launches saw."""
    texts = [launch.facts.machine.get("load", "") for launch in launches]
    loads = [float(text.split()[0]) for text in texts if text[:1].isdigit()]
    return f"{min(loads):.2f} to {max(loads):.2f}" if loads else ABSENT


def _nodes(launches: Iterable[Result]) -> str:
    """The nodes that the launches saw, with and without CPUs, and which of them are HBM."""
    texts = []
    for topology in filter(None, (launch.facts.topology for launch in launches)):
        cpus = sum(bool(node.cpus) for node in topology.nodes)
        hbm = ", ".join(str(node.id) for node in topology.nodes if node.is_hbm)
        texts.append(f"{cpus} with CPUs, {len(topology.nodes) - cpus} without, HBM {hbm or 'none'}")
    return "; ".join(dict.fromkeys(texts)) or ABSENT


def _header(header: Mapping[str, Any]) -> dict[str, str]:
    flat = flatten({key: value for key, value in header.items() if key not in ALWAYS_OTHER})
    flat["command"] = shlex.join(["invoke", *header["command"][1:]])
    return flat


def _mpis_apart(first: Campaign, second: Campaign) -> list[str]:
    """One text for each MPI that is not the same in both, or for MPIs with nothing in common."""
    one, other = (
        {
            launch.launch.mpi: launch.facts.versions.get("mpi", ABSENT)
            for launch in campaign.launches
        }
        for campaign in (first, second)
    )
    shared = sorted(set(one) & set(other))
    if not shared:
        return [f"{', '.join(one.values())} against {', '.join(other.values())}"]
    return [f"{one[mpi]} against {other[mpi]}" for mpi in shared if one[mpi] != other[mpi]]


def _across_mpis(first: pd.DataFrame, second: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The cells, named alike where each side holds one MPI and it is not the same one."""
    mpis = [sorted(set(side["mpi"])) for side in (first, second)]
    if mpis[0] == mpis[1] or any(len(side_mpis) != 1 for side_mpis in mpis):
        return first, second
    name = f"{mpis[1][0]} over {mpis[0][0]}"
    return first.assign(mpi=name), second.assign(mpi=name)


def _results(
    first: pd.DataFrame, second: pd.DataFrame, noise: tuple[Floors, Floors]
) -> tuple[pd.DataFrame, list[str]]:
    """Cells of both, in groups of the size with most launches; why others are left out."""
    sides = [
        side.groupby([*KEYS, "group"], observed=True)["median_s"].agg(list)
        for side in (first, second)
    ]
    best: dict[tuple[Any, ...], tuple[list[float], list[float]]] = {}
    for (*key, _), ours, theirs in pd.concat(sides, axis=1, join="inner").itertuples():
        if min(len(ours), len(theirs)) > min(map(len, best.get(tuple(key), ([], [])))):
            best[tuple(key)] = ours, theirs
    named = [(dict(zip(KEYS, key, strict=True)), pair) for key, pair in best.items()]
    rows = [cell | _row(*pair, _floor(cell, noise)) for cell, pair in named]
    own, other = ({key[:-1] for key in side.index} for side in sides)
    left_out = [
        f"{alone} of {len(mine)} cells are only in the {name} campaign"
        for name, mine, rest in (("first", own, other), ("second", other, own))
        if (alone := len(mine - rest))
    ]
    if grouped := len(own & other) - len(best):
        left_out.append(f"{grouped} cells were timed back to back in groups of different sizes")
    return pd.DataFrame(rows), left_out


def _floor(cell: Mapping[str, Any], noise: tuple[Floors, Floors]) -> float:
    """The larger floor of both sides; NaN where one of them is unknown."""
    return float(np.max([side.of(cell["mpi"], int(cell["bytes"])) for side in noise]))


def _row(first: list[float], second: list[float], floor: float) -> dict[str, Any]:
    ratio = unpaired_ratio(second, first)
    values: dict[str, Any] = {}
    for name, samples in (("first", first), ("second", second)):
        middle = median_interval(samples)
        values |= {f"{name}_s": middle.value, f"{name}_low_s": middle.low}
        values |= {f"{name}_high_s": middle.high, f"{name}_launches": len(samples)}
    conclusion = verdict(ratio.low, ratio.high, floor)
    return values | {
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "verdict": conclusion,
    }


def _first_lack(first: pd.DataFrame, second: pd.DataFrame) -> str:
    """The first factor in which they have no level in common, or that no combination agrees."""
    for key in KEYS:
        levels = [sorted(set(side[key])) for side in (first, second)]
        if not set(levels[0]) & set(levels[1]):
            shown = [", ".join(map(str, side_levels)) or "none" for side_levels in levels]
            return f"{key} {shown[0]} against {shown[1]}"
    return "each factor has levels in common, and no combination of them is in both"
