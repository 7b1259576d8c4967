"""What `bench --tune` is asked, as its flags say. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.bench.question import BLOCKS, DTYPE, QuestionError, check_ranks
from experiments.bench.trials import Trial
from experiments.model import launch, quantities
from experiments.model.arms import HARNESS
from experiments.model.environment import BARE_HOST, MPIS
from experiments.model.experiment import ARENA, NUMPY, PACKED, Measurement
from experiments.model.launch import Launch
from experiments.model.mpi_settings import DEFAULT

RANKS = 2
TAKES = "--ranks, --blocks, --out, --seed and --json"


@dataclass(frozen=True)
class Question:
    """How the thresholds are measured.

    Attributes:
        blocks: launches; fewer than 6 give no interval, and without one nothing is proposed.
    """

    ranks: int = RANKS
    blocks: int = BLOCKS
    measurement: Measurement = field(
        default_factory=lambda: Measurement(time_cap=0.02, min_iterations=10, max_iterations=300)
    )


def ask(cores: int, ranks: str, blocks: int | None, others: Mapping[str, str | bool]) -> Question:
    """The question that flags ask; an empty one means the usual.

    Args:
        others: what the flags that do not go with --tune were given, by flag.

    Raises:
        ExperimentsError: naming the flag, its value and what it may be.
    """
    refused = [flag for flag, given in others.items() if given]
    if refused:
        raise QuestionError(
            f"{', '.join(refused)}: not with --tune, which measures transport direct against "
            f"itself, at operations and sizes of its own; it takes {TAKES}"
        )
    counts = quantities.parse_ranks(ranks) if ranks else [RANKS]
    if len(counts) > 1:
        raise QuestionError(
            f"--ranks {ranks!r}: --tune takes one number of ranks; tune for each by itself"
        )
    check_ranks(ranks, counts, cores)
    return Question(ranks=counts[0], blocks=blocks or BLOCKS)


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
