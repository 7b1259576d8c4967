"""From a question to a results folder: what stands behind `invoke bench`.

Puts together what other modules know; parses no flags, prints no table.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import attend, guard, results
from experiments.attend import LaunchFailed
from experiments.bench import attempts, other_build, store
from experiments.bench.attempts import Attempts
from experiments.bench.compare import against_peers, noise, own
from experiments.bench.launching import header_of, measure
from experiments.bench.names import GLOO, MPI_ITSELF, OTHER_BUILD, PICKLE
from experiments.bench.other_build import OtherBuild
from experiments.bench.question import Question
from experiments.bench.schedule import Launch, schedule
from experiments.bench.settings import DEFAULT, variables
from experiments.environments.mpiexec import FLAVOURS
from experiments.progress import Display
from experiments.provision import mpi
from experiments.provision.mpi import MpiMissing
from experiments.stages import Stages

PROGRAM = "experiments.bench.program"
BEGIN = 1.5  # seconds in which the ranks of a launch start and end
ADVICE = "look at it, then run the bench again, or leave that MPI out with --peers"


def run(question: Question, out: Path, seed: int | None, stages: Stages) -> None:
    """Measure a new bench into `out`; launches that finish stay, whatever ends the run.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    store.refuse_existing(out)
    with guard.watching(out, stages.say):
        other = _other_build(question, stages)
        question, prefixes, missing = _ready(question, stages)
        seed = random.SystemRandom().getrandbits(32) if seed is None else seed
        launches = schedule(question, seed)
        header = header_of(question, seed, launches, missing)
        store.create(out, header | ({"other_build": other.label} if other else {}))
        stages.say(f"{len(launches)} launches, which take up to {_estimate(launches)}")
        with stages.stage("measurement", spinner=False), Display(len(launches), 0) as display:
            attempted = Attempts()
            for launch in launches:
                display.begin(launch.name)
                _attempt(out, launch, prefixes[launch.flavour], other, attempted, display)
                display.end()


def summarise(folder: Path) -> store.Bench:
    """Read what is finished, and write it down for programs too."""
    found = store.load(folder)
    results.write_json(folder / store.TABLE, table(found))
    return found


def table(found: store.Bench) -> dict[str, Any]:
    """Everything that is printed, and the launch medians that it comes from."""
    return {
        "launches": _records(found.medians),
        "direct": _records(own(found.medians)),
        "peers": _records(against_peers(found.medians)),
        "noise": _plain(noise(found.medians)),
        "notes": list(found.notes),
        "machine": found.header["machine"],
        "question": found.header["question"],
    }


def _ready(question: Question, stages: Stages) -> tuple[Question, dict[str, Path], list[str]]:
    """An environment for each MPI; one that cannot be made is left out, unless it was named."""
    prefixes: dict[str, Path] = {}
    missing: list[str] = []
    for flavour in question.flavours:
        try:
            prefixes[flavour] = mpi.ensure(flavour, stages.say)
        except MpiMissing as error:
            if question.named:
                raise
            missing.append(f"{flavour} is left out: {error}")
            stages.say(missing[-1])
    if not prefixes:
        raise MpiMissing(missing[0])
    peers = tuple(peer for peer in question.peers if peer in prefixes or peer not in FLAVOURS)
    return replace(question, peers=peers), prefixes, missing


def _other_build(question: Question, stages: Stages) -> OtherBuild | None:
    if not question.against:
        return None
    with stages.stage("other build"):
        return other_build.prepare(Path(question.against), stages.say)


def _estimate(launches: Sequence[Launch]) -> str:
    """ "about 14 min", if every contender takes all of its time in every cell; half is usual."""
    seconds = 0.0
    for launch in launches:
        in_all_forms = 2 + (MPI_ITSELF in launch.peers) + 2 * (OTHER_BUILD in launch.peers)
        in_one = len({*launch.peers} & {PICKLE, GLOO})
        turns = len(launch.cells) * (in_all_forms * len(launch.forms) + in_one)
        seconds += BEGIN + turns * launch.measurement.time_cap
    return f"about {seconds / 60:.0f} min" if seconds > 90 else f"about {seconds:.0f} s"


def _attempt(
    out: Path,
    launch: Launch,
    prefix: Path,
    other: OtherBuild | None,
    attempted: Attempts,
    display: Display,
) -> None:
    """Measure a launch; where a peer hangs or crashes, once more without what it failed at."""
    while (each := attempted.prepare(launch)) is not None:
        try:
            return _measure(out, each, prefix, other, display)
        except LaunchFailed as failure:
            if attend.disk_full(out):
                raise
            display.say(attempted.failed(each, failure))
            log = out / "logs" / f"{launch.name}.log"
            log.replace(log.with_name(f"{launch.name}.failed-{len(each.without) + 1}.log"))
            results.fail(out, launch.name, each.to_dict(), failure.why)
    return None


def _measure(
    out: Path, launch: Launch, prefix: Path, other: OtherBuild | None, display: Display
) -> None:
    program = (PROGRAM, str(other.package)) if other else (PROGRAM,)
    patience = attend.STALLED if launch.setting == DEFAULT else attempts.PATIENCE
    extra = variables(launch.flavour, launch.setting)
    measure(out, launch, prefix, program, extra, display.within, ADVICE, patience)


def _records(frame: Any) -> list[dict[str, Any]]:
    return [
        {str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and plain != plain else plain
