"""Starts one launch of a bench's program, and describes a bench before its first launch."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from experiments import attend, results
from experiments.bench import turn
from experiments.environments.command import Command, Process
from experiments.environments.mpiexec import mpiexec
from experiments.measure import machine
from experiments.provision import image, passthrough


class Described(Protocol):
    """Anything that a JSON file can hold."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""


class Launch(Described, Protocol):
    """One start of one MPI."""

    @property
    def name(self) -> str:
        """Names the launch within its bench: 0003-mpich."""

    @property
    def flavour(self) -> str:
        """The MPI that starts it."""

    @property
    def ranks(self) -> int:
        """How many there are."""


def measure(
    out: Path,
    launch: Launch,
    prefix: Path,
    program: Sequence[str],
    variables: Mapping[str, str],
    within: Callable[[float], None],
    advice: str,
    patience: float = attend.STALLED,
) -> None:
    """Run a launch and take what it found into the folder `out`.

    Args:
        prefix: the environment of its MPI.
        program: a module, which is given the launch's folder, and further arguments.
        variables: of its environment, beside those that start the MPI at all.
        within, advice, patience: as attend.attended() takes them.

    Raises:
        LaunchFailed: it ended badly or stood still; `left` has the text of turn.FILE.
        ResultsError: it wrote nothing, or something torn.
    """

    def prepare(place: Path) -> Command:
        results.write_json(place / "launch.json", launch.to_dict())
        python, (module, *arguments) = str(prefix / "bin/python"), program
        argv, environment = mpiexec(
            *(launch.flavour, prefix, launch.ranks, passthrough.cores()),
            [python, "-m", module, str(place.absolute()), *arguments],
        )
        return Process(tuple(argv), environment | dict(variables))

    options = (within, advice, patience)
    with attend.attended(out, launch.name, prepare, None, *options, keep=(turn.FILE,)):
        pass


def header_of(
    question: Described, seed: int, launches: Sequence[Launch], missing: Sequence[str]
) -> dict[str, Any]:
    """What a bench's folder holds of it before its first launch.

    Args:
        missing: one sentence for each MPI that is left out.
    """
    return {
        "question": question.to_dict(),
        "seed": seed,
        "schedule": [launch.name for launch in launches],
        "missing": list(missing),
        "machine": machine.machine(),
        "cores": passthrough.cores(),
        "git": image.revision(),
        "command": sys.argv,
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
