"""What a campaign's folder holds: written whole or not at all.

results/<campaign>/campaign.json                    what was asked: spec, seed, schedule, machine
results/<campaign>/environment.json                 what it ran with: packages, recipes of images
results/<campaign>/launches/0003-docker.json, .npz  one launch: what was found, and its samples
results/<campaign>/failed/0003-docker.json          why a launch failed that is not finished yet
results/<campaign>/incoming/                        launches under way; nothing here is a result
results/<campaign>/.names.json                      names that its archive replaces by words
Nothing that a finished launch wrote is ever written again. reading.py makes DataFrames of it.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.model.launch import FORMAT, from_plain
from experiments.processes.files import whole_file
from experiments.results import formats, local_names, typed
from experiments.results.result import Failure, Result

PRIVATE = 0o700  # of a launch's folder: its ranks and its driver take orders from files there
PROGRAM = "program.json"
"""In place of campaign.json, where a user's program was measured; program_runs.py reads it."""
HEADER = ("name", "experiment", "seed", "schedule")
"""What a campaign cannot be read or resumed without."""
UNPACKED = "hbmcomm-unpacked-"
"""How the name of a folder begins that has what an archive holds, for as long as it is read."""


class ResultsError(ExperimentsError):
    """A results folder or its archive cannot be read, or does not fit what is asked of it."""


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write whole or not at all, flushed to disk."""
    text = json.dumps(values, indent=1, sort_keys=True)
    with whole_file(path) as file:
        file.write(f"{text}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def refuse_existing(folder: Path) -> None:
    """Fail before any work is done for a folder that cannot take a new campaign.

    Raises:
        ResultsError: when a campaign's results or other files are already there.
    """
    _refuse_campaign(folder)
    refuse_occupied(folder)


def refuse_occupied(folder: Path) -> None:
    """Fail for a folder with files in it, except for hidden ones: results need their own.

    Raises:
        ResultsError: naming one of the files.
    """
    files = sorted(path.name for path in folder.glob("[!.]*"))
    if files:
        raise ResultsError(f"{folder} is not empty: it has {files[0]}; name a new folder by --out")


def _refuse_campaign(folder: Path) -> None:
    if (folder / "campaign.json").exists():
        raise ResultsError(
            f"{folder} already holds a campaign; pass --resume to complete it, or another --out"
        )


def create(folder: Path, header: Mapping[str, Any], name: str = "campaign.json") -> None:
    """Begin a campaign's folder; its header goes into the file of that name.

    Raises:
        ResultsError: when another campaign's results are already there.
    """
    _refuse_campaign(folder)
    (folder / "launches").mkdir(parents=True, exist_ok=True)
    write_json(folder / local_names.FILE, local_names.here(folder))
    write_json(folder / name, {"format": FORMAT, **header})


def read_header(folder: Path) -> dict[str, Any]:
    """campaign.json.

    Raises:
        ResultsError: when there is none, it is cut short or lacks a key.
        OtherFormat: another version wrote it, in a format that this one does not read.
    """
    path = folder / "campaign.json"
    if not folder.is_dir():
        raise ResultsError(f"there is no results folder {folder}; make one: ./inv run --out DIR")
    if (folder / PROGRAM).exists():
        raise ResultsError(
            f"{folder} is of a user's program, which has an answer and no figures: "
            f"./inv report --results {folder}"
        )
    if not path.exists():
        raise ResultsError(
            f"{folder} holds no campaign.json, so it is no results folder; "
            "name one with --results, or make one: ./inv run"
        )
    header = read_json(path)
    formats.check(path, header)
    lacking = [key for key in HEADER if key not in header]
    if lacking:
        raise ResultsError(f"{path} lacks {', '.join(lacking)}; {mend(path)}")
    with _named(path):
        typed.check(header, "campaign")
    return {**formats.HEADER, **header}


def fail(folder: Path, name: str, launch: Mapping[str, Any], reason: str) -> None:
    """Keep why a launch failed, until it is finished after all."""
    place = folder / "failed"
    place.mkdir(exist_ok=True)
    write_json(place / f"{name}.json", {"launch": launch, "reason": reason})


def failed(folder: Path) -> dict[str, Failure]:
    """What fail() kept of launches that are still not finished, by their names."""
    done = finished(folder)
    every = sorted((folder / "failed").glob("[0-9]*.json"))
    return {path.stem: _failure(path) for path in every if path.stem not in done}


def _failure(path: Path) -> Failure:
    values = read_json(path, "failed")
    failure: Failure = from_plain(Failure, {**values["launch"], "reason": values["reason"]})
    return failure


def finished(folder: Path) -> set[str]:
    """Names of the launches that are complete."""
    return {path.stem for path in (folder / "launches").glob("[0-9]*.json")}


def withdraw_torn(folder: Path) -> None:
    """Keep all or none of the launches that took turns: a driver may be killed in between."""
    done = finished(folder)
    for name in done:
        path = folder / "launches" / f"{name}.json"
        if not done.issuperset(Result.of(read_json(path, "launch")).company):
            path.unlink()
            path.with_suffix(".npz").unlink(missing_ok=True)


@contextlib.contextmanager
def incoming(folder: Path, name: str) -> Iterator[Path]:
    """An empty folder for one launch to write into; gone afterwards, whatever happened."""
    place = folder / "incoming" / name
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.mkdir(PRIVATE)
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)
        with contextlib.suppress(OSError):
            place.parent.rmdir()


def accept(
    folder: Path,
    name: str,
    place: Path,
    more: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda values: {},
) -> None:
    """Check what a launch wrote into `place` and take it in: samples first, JSON last.

    Its ranks may be of another user, and their program of anyone.

    Args:
        more: what the launch's JSON has besides, given what its ranks wrote; may refuse it.

    Raises:
        ResultsError: when the launch left nothing, or something torn or of another launch.
        OtherFormat: the launch ran another version.
    """
    result, samples = place / "result.json", place / "samples.npz"
    if not result.exists() or not samples.exists():
        raise ResultsError(
            f"launch {name} ended well but wrote no result; see its log and --resume"
        )
    values = read_json(result)
    with _named(result):
        typed.check({**values, "samples_sha256": "0" * 64}, "launch")
    formats.check(result, values)
    content = _content(samples)
    added = {**more(values), "samples_sha256": hashlib.sha256(content).hexdigest()}
    arrays = _arrays(samples, content)
    with _named(result):
        typed.check_text(added)  # of a log, which may hold anything
        values |= added
        launch = Result.of(values)
        _check_name(launch, name)
        typed.check_samples(launch, arrays)
    write_json(result, values)
    launches = folder / "launches"  # from here on nothing needs room on the disk
    samples.replace(launches / f"{name}.npz")
    result.replace(launches / f"{name}.json")


def read_json(path: Path, schema: typed.Schema = "") -> dict[str, Any]:
    """A file that holds one JSON object of printable text and finite numbers, and fits a schema.

    Raises:
        ResultsError: it is missing, torn or something else; names the field.
    """
    with _named(path):
        return typed.json_object(path, schema)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name the file, and what to do, in the error of its reading."""
    try:
        yield
    except (OSError, ValueError, MemoryError) as error:
        raise ResultsError(f"{path} cannot be read ({error}); {mend(path)}") from error


def mend(path: Path) -> str:
    """What to do about a file that cannot be read."""
    if any(part.startswith(UNPACKED) for part in path.parts):
        return "get the archive again"
    if path.name == "campaign.json":
        return "measure again into another --out"
    if path.parent.name == "failed":  # which says only why a launch is not finished
        return f"delete {path.name}"
    if path.parent.name != "launches":  # a launch under way, which leaves nothing
        return "complete the campaign with --resume"
    return f"delete {path.with_suffix('.json').name} and complete the campaign with --resume"


def read_result(folder: Path, name: str) -> Result:
    """One finished launch, without a look at its samples."""
    path = folder / "launches" / f"{name}.json"
    values = read_json(path)
    formats.check(path, values)
    with _named(path):
        typed.check(values, "launch")
        result = Result.of(values)
        _check_name(result, name)
    return result


def read_launch(folder: Path, name: str) -> tuple[Result, dict[str, NDArray[Any]]]:
    """One finished launch and its samples by read_samples(), proven to be those that it wrote."""
    path = folder / "launches" / f"{name}.json"
    samples = path.with_suffix(".npz")
    if path.exists() and not samples.exists():
        raise ResultsError(f"{samples} is missing beside its {path.name}; {mend(path)}")
    launch, content = read_result(folder, name), _content(samples)
    if hashlib.sha256(content).hexdigest() != launch.samples_sha256:
        raise ResultsError(f"{samples} is not what its launch wrote; {mend(path)}")
    arrays = _arrays(samples, content)
    with _named(path):
        typed.check_samples(launch, arrays)
    return launch, arrays


def _check_name(launch: Result, name: str) -> None:
    if launch.name != name:
        raise ValueError(f"launch holds the launch {launch.name}")
    if launch.company and name not in launch.company:
        raise ValueError(f"company lacks the launch itself, {name}")


def read_samples(path: Path) -> dict[str, NDArray[Any]]:
    """By the keys that the launch's cells name, arrays of shape (iterations, ranks).

    Under `samples` seconds per operation (float64); where the cell names its `columns`, these are
    not ranks but what an external program printed over all of them. Under `begins` when each rank
    began, in seconds from the earliest begin of the interval's turn (float32), which `began_ns`
    names by the clock.
    """
    return _arrays(path, _content(path))


def _content(samples: Path) -> bytes:
    with _named(samples):
        return plain_file.read(samples, typed.MOST_SAMPLES)


def _arrays(samples: Path, content: bytes) -> dict[str, NDArray[Any]]:
    with _named(samples):
        return typed.arrays(content)
