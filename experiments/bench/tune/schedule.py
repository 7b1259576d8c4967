"""Trials -> launches, each of which holds all of them in an order of its own. Pure."""

import random

from experiments.bench.question import DTYPE
from experiments.bench.tune.question import Question
from experiments.bench.tune.trials import Trial
from experiments.model import launch
from experiments.model.arms import HARNESS
from experiments.model.environment import BARE_HOST, MPIS
from experiments.model.experiment import ARENA, NUMPY, PACKED
from experiments.model.launch import Launch
from experiments.model.mpi_settings import DEFAULT

FLAVOUR = MPIS[0]
"""The MPI that starts all launches: transport direct does the same under each."""
TUNE = "tune"


def schedule(
    question: Question, trials: tuple[Trial, ...], kind: str, seed: int
) -> tuple[Launch, ...]:
    """All launches, in the order in which they run; `kind`: of memory in the arena."""
    rng = random.Random(seed)
    cells = list(dict.fromkeys(cell for trial in trials for cell in _cells(trial, kind)))
    launches = []
    for block in range(question.blocks):
        rng.shuffle(cells)
        launches.append(_launch(question, block, tuple(cells), seed))
    return tuple(launches)


def _cells(trial: Trial, kind: str) -> list[launch.Cell]:
    memory = ("regular", NUMPY) if trial.private else (kind, ARENA)
    return [
        launch.Cell(cell.operation, contender, memory[0], "local", cell.bytes, memory[1])
        for cell in trial.cells
        for contender in trial.contenders
    ]


def _launch(question: Question, block: int, cells: tuple[launch.Cell, ...], seed: int) -> Launch:
    return Launch(
        experiment=TUNE,
        block=block,
        arm=TUNE,
        environment=BARE_HOST,
        profile="",
        layout="",
        program=HARNESS,
        mpi=FLAVOUR,
        ranks=question.ranks,
        binding=PACKED,
        dtype=DTYPE,
        measurement=question.measurement,
        cells=cells,
        setting=DEFAULT,
        seed=seed,
    )
