"""A results folder read back: its launches, and a DataFrame of all their cells.

store.py knows how they are stored.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.analysis.campaign import Campaign
from experiments.analysis.statistics import FACTORS, median_interval
from experiments.analysis.validity_warnings import cautions, conditions
from experiments.model.arms import ALONE
from experiments.model.contender_names import NO_TRANSPORT
from experiments.model.errors import SpecError
from experiments.model.experiment import Experiment
from experiments.model.launch import PRIVATE
from experiments.model.lower_bound import COPY, least_seconds, least_wire_seconds, wire_bytes
from experiments.model.quantities import parse_rate
from experiments.model.workloads import COMPUTING, WORKLOADS
from experiments.results import recorded, store
from experiments.results.result import CellResult, Result

# frames are searched row by row, which takes pyarrow's strings twice as long
pd.options.mode.string_storage = "python"

OVER_PRIVATE = f"-{PRIVATE}"
"""What a transport's name ends with where it moves private arrays instead of the arena's."""
COLUMNS = (
    "block",
    "arm",
    *FACTORS,
    "group",
    "barrier",
    "n",
    "turns",
    "company",
    "contest",
    "median_s",
    "low_s",
    "high_s",
    "p95_s",
    "p99_s",
    "min_s",
    "bound_s",
    "skew_s",
    "wire_s",
    "carried",
    "unstable",
    recorded.COLUMN,
)


def load(folder: str | Path) -> Campaign:
    """Read a results folder.

    Raises:
        ResultsError: naming the file that is missing, torn or of another version, or the launches
            that hold different MPIs.
    """
    folder = Path(folder)
    header = store.read_header(folder)
    experiment = _experiment(header, folder / "campaign.json")
    names = sorted(store.finished(folder))
    if not names:
        raise store.ResultsError(
            f"{folder} holds no finished launch yet; complete it: ./inv run --resume --out {folder}"
        )
    launches: dict[str, Result] = {}
    rows: list[dict[str, Any]] = []
    for name in names:
        launch, samples = store.read_launch(folder, name)
        launches[name] = launch = _renamed(launch)
        if not launch.cells:
            path = folder / "launches" / f"{name}.json"
            raise store.ResultsError(f"{path} holds no cells; {store.mend(path)}")
        rows.extend(_rows(launch, samples))
    _refuse_other_mpi(folder, launches)
    every = pd.DataFrame(rows, columns=list(COLUMNS))
    copied, lonely = every["operation"] == COPY, every["arm"] == ALONE
    stepped = every["operation"].isin(COMPUTING)
    bounded = ~(copied | stepped & (every["transport"] == NO_TRANSPORT))
    cells, alone, controls = (
        every[chosen].reset_index(drop=True)
        for chosen in (bounded & ~lonely, bounded & lonely, copied & ~lonely)
    )
    private = controls["transport"].str.endswith(OVER_PRIVATE)
    controls["transport"] = np.where(private, NO_TRANSPORT + OVER_PRIVATE, NO_TRANSPORT)
    launches = {name: launch for name, launch in launches.items() if launch.launch.arm != ALONE}
    return Campaign(
        folder,
        header["name"],
        experiment,
        header,
        list(launches.values()),
        cells,
        controls,
        alone,
        cautions(header, launches, cells, store.failed(folder)),
        tuple(conditions(launches, cells)),
    )


def _experiment(header: Mapping[str, Any], path: Path) -> Experiment:
    try:
        return Experiment.from_dict(header["experiment"], f"{path}: experiment", stored=True)
    except SpecError as error:
        raise store.ResultsError(
            f"{error}: the file is damaged; take it from its archive again, or measure again into "
            "another --out"
        ) from error


def _renamed(launch: Result) -> Result:
    """A transport over private arrays is one of its own to tables, figures and ratios."""
    cells = tuple(
        replace(cell, transport=cell.transport + OVER_PRIVATE) if cell.buffers == PRIVATE else cell
        for cell in launch.cells
    )
    return replace(launch, cells=cells)


def _refuse_other_mpi(folder: Path, launches: Mapping[str, Result]) -> None:
    first_with: dict[str, dict[str, str]] = {}
    for name, launch in launches.items():
        version = launch.facts.versions.get("mpi", "not recorded")
        first_with.setdefault(launch.launch.mpi, {}).setdefault(version, name)
    for flavour, versions in first_with.items():
        if len(versions) > 1:
            listed = ", ".join(f"{version} in {name}" for version, name in versions.items())
            raise store.ResultsError(
                f"the launches of {folder} with {flavour} hold different MPIs ({listed}), so they "
                "cannot be compared; measure again into another --out"
            )


def _rows(launch: Result, samples: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """One row per cell; COLUMNS, and more."""
    company = " ".join(launch.company)
    bounding = {
        _memory(cell): float(np.median(samples[cell.samples][cell.warmup :].max(axis=1)))
        for cell in launch.measured
        if cell.operation == COPY or cell.transport == NO_TRANSPORT
    }
    for cell in launch.measured:
        times = samples[cell.samples][cell.warmup :].max(axis=1)
        middle = median_interval(times)
        p95, p99 = np.quantile(times, (0.95, 0.99)).tolist()
        bound = bounding.get(_memory(cell), np.nan)
        if cell.operation not in WORKLOADS:
            bound = least_seconds(cell.operation, launch.launch.ranks, bound)
        yield {
            **launch.factors(cell),
            **_on_links(launch, cell),
            "company": company,
            "n": times.size,
            "turns": _turns(times, cell.turn),
            "median_s": middle.value,
            "low_s": middle.low,
            "high_s": middle.high,
            "p95_s": p95,
            "p99_s": p99 if times.size >= 100 else np.nan,
            "min_s": float(times.min()),
            "skew_s": _skew(cell, samples),
            "bound_s": bound,
            "unstable": _unstable(times),
        }


def _on_links(launch: Result, cell: CellResult) -> dict[str, float]:
    """Least seconds on the links between hosts, and what these carried over the least."""
    hosts = [len(host.ranks) for host in launch.facts.hosts]
    columns = {"wire_s": np.nan, "carried": np.nan}
    least = wire_bytes(cell.operation, hosts) if hosts else 0.0
    if not least > 0:
        return columns
    if rate := launch.launch.environment.rate:
        asked = cell.operation, hosts, cell.bytes, parse_rate(rate)
        columns["wire_s"] = least_wire_seconds(*asked)
    if links := cell.links:
        most = max(*links.sent, *links.received) / links.operations
        columns["carried"] = most / (least * cell.bytes)
    return columns


def _memory(cell: CellResult) -> tuple[Any, ...]:
    """What a cell has in common with what bounds it: a copy, or a workload's computation."""
    step = cell.operation if cell.operation in WORKLOADS else COPY
    return step, cell.kind, cell.locality, cell.buffers, cell.bytes


def _turns(times: NDArray[np.float64], length: int) -> tuple[float, ...]:
    """The median of each turn; none where the launch took no turns."""
    if not length:
        return ()
    return tuple(np.median(times.reshape(-1, length), axis=1))


def _skew(cell: CellResult, samples: Mapping[str, NDArray[Any]]) -> float:
    """Median over the timed intervals; seconds."""
    if not cell.begins:  # what an older version wrote
        return np.nan
    return float(np.median(np.ptp(samples[cell.begins][cell.warmup :], axis=1)))


def _unstable(times: NDArray[np.float64]) -> bool:
    mean = float(times.mean())
    return bool(times.std() >= 0.1 * mean or times.min() < 0.5 * mean or times.max() > 1.5 * mean)
