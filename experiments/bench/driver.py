"""From a question to a results folder: what stands behind `invoke bench`.

Puts together what other modules know; parses no flags, prints no table.
"""

import random
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments import guard, results, runner
from experiments.bench import store
from experiments.bench.compare import against_peers, noise, own
from experiments.bench.question import Question
from experiments.bench.schedule import Launch, schedule
from experiments.environments.command import Command, Process
from experiments.environments.mpiexec import FLAVOURS, mpiexec
from experiments.measure import machine
from experiments.progress import Display
from experiments.provision import image, mpi, passthrough
from experiments.provision.mpi import MpiMissing
from experiments.stages import Stages

PROGRAM = "experiments.bench.program"
ADVICE = "look at it, then run the bench again, or leave that MPI out with --peers"


def run(question: Question, out: Path, seed: int | None, stages: Stages) -> None:
    """Measure a new bench into `out`; launches that finish stay, whatever ends the run.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    store.refuse_existing(out)
    with guard.watching(out, stages.say):
        question, prefixes, missing = _ready(question, stages)
        seed = random.SystemRandom().getrandbits(32) if seed is None else seed
        launches = schedule(question, seed)
        store.create(out, _header(question, seed, launches, missing))
        with stages.stage("measurement", spinner=False), Display(len(launches), 0) as display:
            for launch in launches:
                display.begin(launch.name)
                _measure(out, launch, prefixes[launch.flavour], display)
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


def _measure(out: Path, launch: Launch, prefix: Path, display: Display) -> None:
    def prepare(place: Path) -> Command:
        results.write_json(place / "launch.json", launch.to_dict())
        program = (str(prefix / "bin/python"), "-m", PROGRAM, str(place.absolute()))
        argv, variables = mpiexec(
            launch.flavour, prefix, launch.ranks, passthrough.cores(), program
        )
        return Process(tuple(argv), variables)

    with runner.attended(out, launch.name, prepare, None, display.within, ADVICE):
        pass


def _header(
    question: Question, seed: int, launches: tuple[Launch, ...], missing: list[str]
) -> dict[str, Any]:
    return {
        "question": question.to_dict(),
        "seed": seed,
        "schedule": [launch.name for launch in launches],
        "missing": missing,
        "machine": machine.machine(),
        "cores": passthrough.cores(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _records(frame: Any) -> list[dict[str, Any]]:
    return [
        {str(key): _plain(value) for key, value in row.items()} for row in frame.to_dict("records")
    ]


def _plain(value: Any) -> Any:
    """JSON has no NaN."""
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and plain != plain else plain
