"""What the folder of bench --tune holds, and what its launches propose.

results/<tune>/tune.json                     what was asked: question, trials, seed, machine
results/<tune>/launches/0003-tune.json, .npz every sample of every rank
results/<tune>/proposal.json                 the proposed table, and the ratios that it comes from
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from experiments.analysis.selection import json_value
from experiments.analysis.statistics import median_ratio
from experiments.bench import tune_ratios
from experiments.bench.propose import Proposal, propose
from experiments.bench.trials import Trial
from experiments.bench.tune_ratios import Compared
from experiments.results import formats, store
from experiments.results.store import ResultsError

HEADER = "tune.json"
PROPOSAL = "proposal.json"
NOISY = 0.1
"""How far the same way may stray from itself before a reader is warned."""
FETCHES = ("HBMCOMM_FETCH_BYTES", "HBMCOMM_FETCH_IDLE_BYTES")
NO_FETCH = "process_vm_readv is not possible here: {}"


@dataclass(frozen=True)
class _Threshold:
    """As the library's table has it, without its meaning."""

    variable: Annotated[str, Field(pattern="^HBMCOMM_[A-Z_]+$")]  # becomes a line for a shell
    unit: str
    value: int
    default: int


@dataclass(frozen=True)
class _Header:
    """What tune.json holds of the question, in the types of JSON."""

    left_out: dict[str, str]
    trials: tuple[Trial, ...]
    thresholds: tuple[_Threshold, ...]
    schedule: tuple[str, ...]
    machine: dict[str, str]
    question: dict[str, Any]


FORM = TypeAdapter(_Header)


@dataclass(frozen=True)
class Tuned:
    """A folder, read.

    Attributes:
        proposals: one for each threshold, in the order of the library's table.
        compared: by variable, the ratios that were measured.
        noise: how far the same way strays from itself; NaN where it is unknown.
        notes: one sentence each; what a reader must know before believing a proposal.
    """

    header: dict[str, Any]
    proposals: tuple[Proposal, ...]
    compared: Mapping[str, tuple[Compared, ...]]
    noise: float
    notes: tuple[str, ...]

    @property
    def exports(self) -> list[str]:
        """Shell lines that put the proposal into force."""
        return [
            f"export {each.variable}={each.proposed}" for each in self.proposals if each.changes
        ]


def load(folder: Path) -> Tuned:
    """Read a folder, however many of its launches are finished.

    Raises:
        ResultsError: it is none, or no launch is finished yet.
        OtherFormat: another version wrote it.
    """
    header = store.read_json(folder / HEADER)
    formats.check(folder / HEADER, header)
    asked = _asked(header, folder / HEADER)
    names = sorted(store.finished(folder))
    if not names:
        raise ResultsError(f"{folder} holds no finished launch; measure again: ./inv bench --tune")
    launches = [store.read_launch(folder, name) for name in names]
    samples = [store.read_samples(folder / "launches" / f"{name}.npz") for name in names]
    try:
        times = [tune_ratios.read(*each) for each in zip(launches, samples, strict=True)]
        return _tuned(header, asked, launches, times)
    except (LookupError, ValueError) as error:
        raise ResultsError(
            f"{folder} lacks in its launches what {HEADER} asks for ({error!r}); measure again: "
            "./inv bench --tune"
        ) from error


def _tuned(
    header: dict[str, Any],
    asked: _Header,
    launches: Sequence[Mapping[str, Any]],
    times: Sequence[tune_ratios.Times],
) -> Tuned:
    left_out = dict(asked.left_out)
    way = launches[0]["environment"].get("datapath", {}).get("cma", "")
    if way != "works":
        left_out |= dict.fromkeys(FETCHES, NO_FETCH.format(way))
    trials = [trial for trial in asked.trials if trial.variable not in left_out]
    noise = tune_ratios.noise(trials, times)
    compared = {trial.variable: tune_ratios.compared(trial, times) for trial in trials}
    by_variable = {
        trial.variable: propose(trial, compared[trial.variable], noise) for trial in trials
    }
    proposals = tuple(
        by_variable.get(name := each["variable"])
        or Proposal(name, each["unit"], each["value"], each["value"], why=left_out[name])
        for each in header["thresholds"]
    )
    return Tuned(header, proposals, compared, noise, tuple(_notes(header, launches, noise)))


def _asked(header: Mapping[str, Any], path: Path) -> _Header:
    """What tune.json asks for.

    Raises:
        ResultsError: naming the field that no tune writes.
    """
    try:
        return FORM.validate_json(json.dumps(header), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise ResultsError(
            f"{path}: {field} does not hold what a tune writes ({first['msg']}); measure again: "
            "./inv bench --tune"
        ) from error


def _notes(
    header: Mapping[str, Any], launches: Sequence[Mapping[str, Any]], noise: float
) -> Iterator[str]:
    if len(launches) < len(header["schedule"]):
        yield f"{len(launches)} of {len(header['schedule'])} planned launches are finished"
    if noise > NOISY:
        yield "something else runs on these CPUs: on a quiet machine smaller gains show"
    changed = [
        f"{each['variable']}={each['value']}"
        for each in header["thresholds"]
        if each["value"] != each["default"]
    ]
    if changed:
        yield f"proposals begin from this environment, not from the defaults: {' '.join(changed)}"
    if any(cell["emulated"] for each in launches for cell in each["cells"]):
        yield "high-bandwidth memory is emulated on ordinary memory"


def plain(found: Tuned) -> dict[str, Any]:
    """Everything that is printed and the ratios that it comes from, as JSON holds it."""
    return {
        "thresholds": [_threshold(each) for each in found.proposals],
        "exports": found.exports,
        "compared": [
            {"variable": variable} | _compared(each)
            for variable, cells in found.compared.items()
            for each in cells
        ],
        "noise": json_value(found.noise),
        "notes": list(found.notes),
        "machine": found.header["machine"],
        "question": found.header["question"],
    }


def _threshold(each: Proposal) -> dict[str, Any]:
    gain = each.gain and {key: json_value(value) for key, value in each.gain._asdict().items()}
    return asdict(each) | {"gain": gain}


def _compared(each: Compared) -> dict[str, Any]:
    middle = median_ratio(each.ratios)
    return asdict(each.cell) | {
        "value": each.value,
        "ratios": list(each.ratios),
        "ratio": middle.value,
        "low": json_value(middle.low),
        "high": json_value(middle.high),
    }
