"""Starts one launch of the tuner's program, and describes a tuning before its first launch."""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.bench.tune.question import Question
from experiments.bench.tune.schedule import FLAVOUR, Launch
from experiments.environments.mpi.mpiexec import mpiexec
from experiments.environments.process import Command, Process
from experiments.jobs import attend
from experiments.programs.machine import facts
from experiments.provision import passthrough
from experiments.provision.images import image
from experiments.results import store

PROGRAM = "experiments.bench.tune.program"


def measure(
    out: Path, launch: Launch, prefix: Path, within: Callable[[float], None], advice: str
) -> None:
    """Run a launch and take what it found into the folder `out`.

    Args:
        prefix: the environment of its MPI.
        within, advice: as attend.attended() takes them.

    Raises:
        LaunchFailed: it ended badly or stood still.
        ResultsError: it wrote nothing, or something torn.
    """

    def prepare(place: Path) -> Command:
        store.write_json(place / "launch.json", launch.to_dict())
        argv, environment = mpiexec(
            *(FLAVOUR, prefix, launch.ranks, passthrough.cores()),
            [str(prefix / "bin/python"), "-m", PROGRAM, str(place.absolute())],
        )
        return Process(tuple(argv), environment)

    with attend.attended(out, launch.name, prepare, None, within, advice):
        pass


def header_of(question: Question, seed: int, launches: Sequence[Launch]) -> dict[str, Any]:
    """What the folder holds before its first launch."""
    return {
        "question": question.to_dict(),
        "seed": seed,
        "schedule": [launch.name for launch in launches],
        "machine": facts.machine(),
        "cores": passthrough.cores(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
