"""What a campaign's folder holds: written whole or not at all, read back as a DataFrame.

results/<campaign>/campaign.json                    what was asked: spec, seed, schedule, machine
results/<campaign>/launches/0003-docker.json, .npz  one launch: what was found, and its samples
results/<campaign>/failed/0003-docker.json          why a launch failed that is not finished yet
results/<campaign>/incoming/                        launches under way; nothing here is a result
Nothing that a finished launch wrote is ever written again.
"""

import contextlib
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.bound import COPY, least_seconds
from experiments.cautions import cautions
from experiments.confounders import flatten
from experiments.emulated import recorded
from experiments.errors import ExperimentsError
from experiments.schedule import FORMAT
from experiments.spec import Experiment
from experiments.statistics import FACTORS, median_interval

NO_TRANSPORT = "none"  # a control's: whichever transport its launch happened to measure first
HEADER = ("name", "experiment", "seed", "schedule")
"""What a campaign cannot be read or resumed without."""
LEVELS = ("block", "arm", "environment", "profile", "layout", "mpi", "ranks", "binding")
"""What a launch's cells have in common, as the launch names it."""
COLUMNS = (
    "block",
    "arm",
    *FACTORS,
    "group",
    "n",
    "median_s",
    "low_s",
    "high_s",
    "p95_s",
    "p99_s",
    "min_s",
    "bound_s",
    "unstable",
    recorded.COLUMN,
)


class ResultsError(ExperimentsError):
    """A results folder cannot be read, or does not fit what is asked of it."""


@dataclass(frozen=True)
class Campaign:
    """A results folder, read.

    Attributes:
        header: campaign.json.
        failed: by the names of launches that failed: {"launch": as asked, "reason": text}.
        launches: each finished launch's JSON, in the order of the file names.
        cells: one row per launch and cell; COLUMNS; times in seconds, bytes per rank.
        controls: the same of plain copies: each rank copies its own buffer, no MPI takes part.
        warnings: one sentence each; what a reader must know before believing a figure.
    """

    folder: Path
    name: str
    experiment: Experiment
    header: dict[str, Any]
    launches: list[dict[str, Any]]
    failed: dict[str, dict[str, Any]]
    cells: pd.DataFrame
    controls: pd.DataFrame
    warnings: list[str]


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write whole or not at all: a temporary neighbour, flushed to disk, then renamed."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(values, file, indent=1, sort_keys=True)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def refuse_existing(folder: Path) -> None:
    """Fail before any work is done for a folder that cannot take it.

    Raises:
        ResultsError: when another campaign's results are already there.
    """
    if (folder / "campaign.json").exists():
        raise ResultsError(
            f"{folder} already holds a campaign; pass --resume to complete it, or another --out"
        )


def create(folder: Path, header: Mapping[str, Any]) -> None:
    """Begin a campaign's folder.

    Raises:
        ResultsError: when another campaign's results are already there.
    """
    refuse_existing(folder)
    (folder / "launches").mkdir(parents=True, exist_ok=True)
    write_json(folder / "campaign.json", {"format": FORMAT, **header})


def read_header(folder: Path) -> dict[str, Any]:
    """campaign.json.

    Raises:
        ResultsError: when there is none, it is cut short, lacks a key, or another version wrote it.
    """
    path = folder / "campaign.json"
    if not folder.is_dir():
        raise ResultsError(f"there is no results folder {folder}; make one: ./inv run --out DIR")
    if not path.exists():
        raise ResultsError(
            f"{folder} holds no campaign.json, so it is no results folder; "
            "name one with --results, or make one: ./inv run"
        )
    header = read_json(path)
    if header.get("format") != FORMAT:
        raise ResultsError(
            f"{path} is of format {header.get('format')!r}; this version reads format {FORMAT}: "
            "use the version that wrote it, or measure again"
        )
    lacking = [key for key in HEADER if key not in header]
    if lacking:
        raise ResultsError(f"{path} lacks {', '.join(lacking)}; {_mend(path)}")
    return header


def fail(folder: Path, name: str, launch: Mapping[str, Any], reason: str) -> None:
    """Keep why a launch failed, until it is finished after all."""
    place = folder / "failed"
    place.mkdir(exist_ok=True)
    write_json(place / f"{name}.json", {"launch": launch, "reason": reason})


def failed(folder: Path) -> dict[str, dict[str, Any]]:
    """What fail() kept of launches that are still not finished, by their names."""
    done = finished(folder)
    return {
        path.stem: read_json(path)
        for path in sorted((folder / "failed").glob("[0-9]*.json"))
        if path.stem not in done
    }


def finished(folder: Path) -> set[str]:
    """Names of the launches that are complete."""
    return {path.stem for path in (folder / "launches").glob("[0-9]*.json")}


@contextlib.contextmanager
def incoming(folder: Path, name: str) -> Iterator[Path]:
    """An empty folder for one launch to write into; gone afterwards, whatever happened."""
    place = folder / "incoming" / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def add(place: Path, values: Mapping[str, Any]) -> None:
    """Add to what a launch wrote into `place`, before it is taken in."""
    result = place / "result.json"
    if result.exists():  # accept() refuses a launch without
        write_json(result, {**read_json(result), **values})


def accept(folder: Path, name: str, place: Path) -> None:
    """Check what a launch wrote into `place` and take it in: samples first, JSON last.

    Raises:
        ResultsError: when the launch left nothing, or something torn.
    """
    result, samples = place / "result.json", place / "samples.npz"
    if not result.exists() or not samples.exists():
        raise ResultsError(
            f"launch {name} ended well but wrote no result; see its log and --resume"
        )
    values = read_json(result)
    values["samples_sha256"] = hashlib.sha256(samples.read_bytes()).hexdigest()
    read_samples(samples)
    write_json(result, values)
    launches = folder / "launches"  # from here on nothing needs room on the disk
    samples.replace(launches / f"{name}.npz")
    result.replace(launches / f"{name}.json")


def load(folder: str | Path) -> Campaign:
    """Read a results folder.

    Raises:
        ResultsError: naming the file that is missing, torn or of another version, or the launches
            that hold different MPIs.
    """
    folder = Path(folder)
    header = read_header(folder)
    experiment = Experiment.from_dict(header["experiment"], str(folder / "campaign.json"))
    names = sorted(finished(folder))
    if not names:
        raise ResultsError(
            f"{folder} holds no finished launch yet; complete it: ./inv run --resume --out {folder}"
        )
    launches = {name: read_launch(folder, name) for name in names}
    _refuse_other_mpi(folder, launches)
    rows: list[dict[str, Any]] = []
    for name, launch in launches.items():
        rows.extend(_rows(launch, read_samples(folder / "launches" / f"{name}.npz")))
    every = pd.DataFrame(rows, columns=list(COLUMNS))
    copied = every["operation"] == COPY
    cells = every[~copied].reset_index(drop=True)
    controls = every[copied].assign(transport=NO_TRANSPORT).reset_index(drop=True)
    broken = failed(folder)
    return Campaign(
        folder,
        header["name"],
        experiment,
        header,
        list(launches.values()),
        broken,
        cells,
        controls,
        cautions(header, launches, cells, broken),
    )


def _refuse_other_mpi(folder: Path, launches: Mapping[str, dict[str, Any]]) -> None:
    first_with: dict[str, dict[str, str]] = {}
    for name, launch in launches.items():
        version = flatten(launch["environment"]).get("versions.mpi", "not recorded")
        first_with.setdefault(launch["launch"]["mpi"], {}).setdefault(version, name)
    for flavour, versions in first_with.items():
        if len(versions) > 1:
            told = ", ".join(f"{version} in {name}" for version, name in versions.items())
            raise ResultsError(
                f"the launches of {folder} with {flavour} hold different MPIs ({told}), so they "
                "cannot be compared; measure again into another --out"
            )


def read_json(path: Path) -> dict[str, Any]:
    """A file that holds one JSON object.

    Raises:
        ResultsError: it is missing, torn or something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ResultsError(f"{path} cannot be read ({error}); {_mend(path)}") from error
    if not isinstance(values, dict):
        raise ResultsError(f"{path} holds no JSON object; {_mend(path)}")
    return values


def _mend(path: Path) -> str:
    if path.name == "campaign.json":
        return "measure again into another --out"
    if path.parent.name != "launches":  # a launch under way, which leaves nothing
        return "complete the campaign with --resume"
    return f"delete {path.with_suffix('.json').name} and complete the campaign with --resume"


def read_launch(folder: Path, name: str) -> dict[str, Any]:
    """One finished launch's JSON, its samples proven to be those that it wrote."""
    path = folder / "launches" / f"{name}.json"
    launch = read_json(path)
    if launch.get("format") != FORMAT or "cells" not in launch or "launch" not in launch:
        raise ResultsError(f"{path} is not a launch of format {FORMAT}; {_mend(path)}")
    samples = path.with_suffix(".npz")
    if not samples.exists():
        raise ResultsError(f"{samples} is missing beside its {path.name}; {_mend(path)}")
    if hashlib.sha256(samples.read_bytes()).hexdigest() != launch.get("samples_sha256"):
        raise ResultsError(f"{samples} is not what its launch wrote; {_mend(path)}")
    return launch


def read_samples(path: Path) -> dict[str, NDArray[np.float64]]:
    """Seconds per operation, one array of shape (iterations, ranks) per cell."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {key: stored[key] for key in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ResultsError(f"{path} cannot be read ({error}); {_mend(path)}") from error


def _rows(
    launch: dict[str, Any], samples: Mapping[str, NDArray[np.float64]]
) -> Iterator[dict[str, Any]]:
    asked = launch["launch"]
    common = {key: asked[key] for key in LEVELS}
    common |= {key: asked["measurement"][key] for key in ("cadence", "cache")}
    common |= {"dtype": asked["dtype"], recorded.COLUMN: recorded.machine(launch)}
    measured = [cell for cell in launch["cells"] if "skipped" not in cell]
    copies = {
        (cell["kind"], cell["locality"], cell["bytes"]): float(
            np.median(samples[cell["samples"]][cell["warmup"] :].max(axis=1))
        )
        for cell in measured
        if cell["operation"] == COPY
    }
    for cell in measured:
        times = samples[cell["samples"]][cell["warmup"] :].max(axis=1)
        middle = median_interval(times)
        copy = copies.get((cell["kind"], cell["locality"], cell["bytes"]), np.nan)
        yield (
            common
            | {
                key: cell[key]
                for key in (
                    "operation",
                    "transport",
                    "kind",
                    "locality",
                    "bytes",
                    "emulated",
                    "group",
                )
            }
            | {
                "n": times.size,
                "median_s": middle.value,
                "low_s": middle.low,
                "high_s": middle.high,
                "p95_s": float(np.quantile(times, 0.95)),
                "p99_s": float(np.quantile(times, 0.99)) if times.size >= 100 else np.nan,
                "min_s": float(times.min()),
                "bound_s": least_seconds(cell["operation"], asked["ranks"], copy),
                "unstable": _unstable(times),
            }
        )


def _unstable(times: NDArray[np.float64]) -> bool:
    mean = float(times.mean())
    return bool(times.std() >= 0.1 * mean or times.min() < 0.5 * mean or times.max() > 1.5 * mean)
