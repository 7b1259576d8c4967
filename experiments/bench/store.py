"""What a bench's folder holds, and its launch medians as a DataFrame.

results/<bench>/bench.json                       what was asked: question, seed, schedule, machine
results/<bench>/launches/0003-mpich.json, .npz   as a campaign's: every sample of every rank
results/<bench>/failed/0003-mpich-release-gather.json   why a launch did not end well
results/<bench>/table.json                       launch medians and paired ratios, for programs
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import results
from experiments.bench.names import BROKEN, CALLS, MPI_ITSELF, PERSISTENT
from experiments.bench.settings import DEFAULT
from experiments.bound import BARRIER, COPY, least_seconds
from experiments.confounders import flatten
from experiments.emulated import recorded
from experiments.results import ResultsError
from experiments.schedule import FORMAT
from experiments.statistics import median_interval

HEADER = "bench.json"
TABLE = "table.json"
COLUMNS = (
    *("block", "flavour", "setting", "ranks", "operation", "bytes", "contender", "form"),
    *("median_s", "low_s", "high_s", "min_s", "p95_s", "n", "group", "bound_s"),
)


@dataclass(frozen=True)
class Bench:
    """A bench's folder, read.

    Attributes:
        header: bench.json.
        medians: one row per launch, cell and contender; COLUMNS; seconds, bytes per rank.
        notes: one sentence each; what a reader must know before believing a number.
    """

    folder: Path
    header: dict[str, Any]
    medians: pd.DataFrame
    notes: tuple[str, ...]

    @property
    def other_build(self) -> str:
        """What another build of direct is called: "direct 88fb54c"; its revision or version."""
        return f"direct {self.header.get('other_build', 'of another build')}"


def is_bench(folder: Path) -> bool:
    """Whether the folder is a bench's, and no campaign's."""
    return (folder / HEADER).is_file()


def create(folder: Path, header: Mapping[str, Any]) -> None:
    """Begin a bench's folder; refuse_existing comes first."""
    (folder / "launches").mkdir(parents=True, exist_ok=True)
    results.write_json(folder / HEADER, {"format": FORMAT, **header})


def refuse_existing(folder: Path) -> None:
    """Fail before any work is done for a folder that holds other results.

    Raises:
        ResultsError: naming it.
    """
    for name in (HEADER, "campaign.json"):
        if (folder / name).exists():
            raise ResultsError(f"{folder} already holds {name}; name another --out")


def load(folder: Path) -> Bench:
    """Read a bench's folder, however many of its launches are finished.

    Raises:
        ResultsError: it is none, another version wrote it, or no launch is finished yet.
    """
    header = results.read_json(folder / HEADER)
    if header.get("format") != FORMAT:
        raise ResultsError(
            f"{folder / HEADER} is of format {header.get('format')!r}; this version reads "
            f"{FORMAT}: measure again into another --out"
        )
    names = sorted(results.finished(folder))
    if not names:
        raise ResultsError(f"{folder} holds no finished launch; measure again: ./inv bench")
    launches = [results.read_launch(folder, name) for name in names]
    rows: list[dict[str, Any]] = []
    for name, launch in zip(names, launches, strict=True):
        rows.extend(_rows(launch, results.read_samples(folder / "launches" / f"{name}.npz")))
    medians = pd.DataFrame(rows, columns=list(COLUMNS))
    notes = [*_notes(header, launches), *_given_up(results.failed(folder))]
    return Bench(folder, header, medians, tuple(notes))


def _rows(
    launch: dict[str, Any], samples: Mapping[str, NDArray[np.float64]]
) -> Iterator[dict[str, Any]]:
    asked = launch["launch"]
    times = {
        cell["samples"]: samples[cell["samples"]][cell["warmup"] :].max(axis=1)
        for cell in launch["cells"]
        if "wrong" not in cell
    }
    copies = {
        cell["bytes"]: float(np.median(times[cell["samples"]]))
        for cell in launch["cells"]
        if cell["operation"] == COPY
    }
    for cell in launch["cells"]:
        if cell["operation"] == COPY or "wrong" in cell:
            continue
        seconds = times[cell["samples"]]
        middle = median_interval(seconds)
        bound = (
            np.nan
            if cell["operation"] == BARRIER
            else least_seconds(cell["operation"], asked["ranks"], copies[cell["bytes"]])
        )
        yield (
            {key: asked[key] for key in ("block", "flavour", "ranks")}
            | {"setting": asked.get("setting", DEFAULT)}
            | {key: cell[key] for key in ("operation", "bytes", "contender", "form", "group")}
            | {"median_s": middle.value, "low_s": middle.low, "high_s": middle.high}
            | {"min_s": float(seconds.min()), "p95_s": float(np.quantile(seconds, 0.95))}
            | {"n": seconds.size, "bound_s": bound}
        )


def _notes(header: Mapping[str, Any], launches: list[dict[str, Any]]) -> Iterator[str]:
    if len(launches) < len(header["schedule"]):
        yield f"{len(launches)} of {len(header['schedule'])} planned launches are finished"
    yield from header["missing"]
    machine = recorded.meaning(recorded.machines(map(recorded.machine, launches)))
    if machine:
        yield machine.removesuffix(".")
    absent = sorted({note for launch in launches for note in launch["absent"].items()})
    for peer, reason in absent:
        where = sorted(
            {each["launch"]["flavour"] for each in launches if each["absent"].get(peer) == reason}
        )
        yield f"{peer} is left out: {reason} in the environment of {', '.join(where)}"
    yield from _broken(launches)
    yield from _wrong(launches)
    yield from _left_out(launches)
    for part in ("hashes.hbmcomm", "hashes.experiments", "versions.numpy", "versions.mpi4py"):
        seen = {flatten(each["environment"]).get(part, "") for each in launches}
        if len(seen) > 1:
            yield f"{part} is not the same in all launches: {', '.join(sorted(seen))}"
    if any(rank["emulated"] for each in launches for rank in each["ranks"]):
        yield "high-bandwidth memory is emulated on ordinary memory"


def _broken(launches: list[dict[str, Any]]) -> Iterator[str]:
    """Persistent calls that nobody could time."""
    measured = {
        (each["launch"]["flavour"], cell["operation"])
        for each in launches
        if MPI_ITSELF in each["launch"]["peers"]
        for cell in each["cells"]
        if cell["form"] == PERSISTENT
    }
    for flavour, operations in BROKEN.items():
        calls = [CALLS[name] for name in operations if (flavour, name) in measured]
        if calls:
            yield f"{flavour}: persistent {', '.join(calls)} left out: this MPI leaves wrong data"


def _wrong(launches: list[dict[str, Any]]) -> Iterator[str]:
    """Peers that left wrong data, and where; what they did there is not counted."""
    sizes: dict[tuple[str, ...], set[int]] = {}
    for launch in launches:
        asked = launch["launch"]
        for cell in launch["cells"]:
            if "wrong" in cell:
                who = (asked["flavour"], cell["contender"], asked.get("setting", DEFAULT))
                sizes.setdefault((*who, cell["form"], cell["operation"]), set()).add(cell["bytes"])
    settings: dict[tuple[str, str, str], list[str]] = {}
    for (flavour, contender, setting, form, operation), where in sorted(sizes.items()):
        calls = f"{form} {CALLS[operation]} of {', '.join(f'{size:,}' for size in sorted(where))}"
        settings.setdefault((flavour, contender, calls), []).append(setting)
    for (flavour, contender, calls), which in sorted(settings.items()):
        peer = _peer({"flavour": flavour, "setting": ", ".join(which)}, contender)
        yield f"{peer}: {calls} bytes left wrong data, not counted"


def _left_out(launches: list[dict[str, Any]]) -> Iterator[str]:
    """Where a peer hung or crashed, and from then on was not measured."""
    sizes: dict[tuple[str, int, str, str, str], set[int]] = {}
    for launch in launches:
        asked = launch["launch"]
        for each in asked.get("without", ()):
            who = _peer(asked, each["contender"])
            key = (who, asked["ranks"], each["form"], each["operation"], each["why"])
            sizes.setdefault(key, set()).add(-1 if each["bytes"] is None else each["bytes"])
    for (who, ranks, form, operation, why), where in sorted(sizes.items()):
        sized = f"{', '.join(f'{size:,}' for size in sorted(where))} bytes"
        call = f"{form} {CALLS[operation]} of {'any size' if -1 in where else sized}"
        yield f"{who}, {ranks} ranks: {call} left out once it failed: {why}"


def _given_up(failed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Launches that failed and were not repeated to an end."""
    whys: dict[tuple[str, int], str] = {}
    for each in failed.values():
        whys[_peer(each["launch"], MPI_ITSELF), each["launch"]["ranks"]] = each["reason"]
    for (who, ranks), why in sorted(whys.items()):
        yield f"{who}, {ranks} ranks: given up: {why}"


def _peer(launch: Mapping[str, Any], contender: str) -> str:
    """ "openmpi", "openmpi (ucx)", "pickle beside openmpi"."""
    setting = launch.get("setting", DEFAULT)
    flavour = launch["flavour"] if setting == DEFAULT else f"{launch['flavour']} ({setting})"
    return flavour if contender == MPI_ITSELF else f"{contender} beside {flavour}"
