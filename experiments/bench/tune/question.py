"""What `bench --tune` is asked, as its flags say. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from experiments.bench.question import BLOCKS, QuestionError, check_ranks
from experiments.model import quantities
from experiments.model.experiment import Measurement

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
