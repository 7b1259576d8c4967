"""The experiment that the flags of a bench ask for: operations, sizes, ranks, forms and peers."""

from collections.abc import Mapping, Sequence

import hbmcomm
from experiments.model import quantities
from experiments.model.contender_names import (
    AGAIN,
    CALLS,
    DIRECT,
    FORMS,
    MPI_ITSELF,
    OTHER_AGAIN,
    OTHER_BUILD,
    PEERS,
    PERSISTENT,
    PLAIN,
)
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import (
    CADENCES,
    MPIS_ARE_ARMS,
    NUMPY,
    Experiment,
    Factors,
    Launches,
    Measurement,
)

NAME = "bench"

USUAL = ("bcast", "gather", "allreduce")
USUAL_FORMS = (PLAIN, PERSISTENT)
SIZES = "8:16MiB:8"
BLOCKS = 6  # the fewest that give an interval
MOST_RANKS = 16  # that are taken unasked
DTYPE = "float32"
ITEM = 4  # bytes of one element

CAP = 0.04  # seconds for the turns of one contender in one cell
MIN_ITERATIONS = 5
MAX_ITERATIONS = 500


class QuestionError(ExperimentsError):
    """A flag of a bench says something that cannot be meant."""


def ask(
    cores: int,
    *,
    operations: str = "",
    sizes: str = "",
    ranks: str = "",
    peers: str = "",
    cadence: str = "",
    private: bool = False,
    blocks: int | None = None,
    forms: str = "",
    tuned: bool = False,
    against: str = "",
) -> Experiment:
    """The experiment that flags ask for; an empty one means the usual.

    Raises:
        ExperimentsError: naming the flag, its value and what it may be.
    """
    counts = quantities.parse_ranks(ranks) if ranks else [min(max(2, cores), MOST_RANKS)]
    check_ranks(ranks, counts, cores)
    if cadence and cadence not in CADENCES:
        raise QuestionError(f"--cadence {cadence!r} is not one of {', '.join(CADENCES)}")
    chosen = _chosen("--peers", peers, PEERS, {name: name for name in PEERS})
    mpis = tuple(peer for peer in chosen if peer in MPIS)
    named = ",".join(CALLS) if operations == "all" else operations
    return Experiment(
        name=NAME,
        title="direct against its peers",
        question="The same collectives over the same buffers: whose calls take how long?",
        factors=Factors(
            operations=_chosen("--ops", named, USUAL, CALLS),
            transports=_transports(chosen, against),
            kinds=("regular" if private else hbmcomm.default_kind(),),
            buffers=(NUMPY,) if private else Factors.buffers,
            sizes=_sizes(sizes or SIZES),
            dtype=DTYPE,
            forms=_chosen("--forms", forms, USUAL_FORMS, {name: name for name in FORMS}),
        ),
        launches=Launches(
            mpis=mpis or MPIS[:1],  # one is needed even if none is a peer
            ranks=tuple(sorted(set(counts))),
            blocks=blocks or BLOCKS,
            aa_pair=False,  # direct-again is in each launch
            arms=MPIS_ARE_ARMS,
            tuned=mpis if tuned else (),
        ),
        measurement=Measurement(
            cadence=cadence or "isolated",
            time_cap=CAP,
            min_iterations=MIN_ITERATIONS,
            max_iterations=MAX_ITERATIONS,
        ),
    )


def check_ranks(text: str, counts: Sequence[int], cores: int) -> None:
    """Refuse fewer ranks than a collective needs, and more than the cores can take turns on."""
    if min(counts) < 2:
        raise QuestionError(f"--ranks {text!r}: a collective needs 2 ranks or more")
    quantities.check_rank_counts(counts, cores)


def _transports(peers: Sequence[str], against: str) -> tuple[str, ...]:
    """The contenders of each cell: each MPI is an arm of its own, so all are one contender."""
    other_build = (OTHER_BUILD, OTHER_AGAIN) if against else ()
    as_cells = dict.fromkeys(MPI_ITSELF if peer in MPIS else peer for peer in peers)
    return DIRECT, AGAIN, *other_build, *as_cells


def _chosen(
    flag: str, text: str, usual: tuple[str, ...], names: Mapping[str, str]
) -> tuple[str, ...]:
    """What a list of names means, in any case, in the order of `names`; "" means the usual.

    Args:
        names: {meaning: the name that messages show}; either is understood.
    """
    if not text:
        return usual
    chosen = quantities.parse_names(flag, text.split(","), names)
    return tuple(name for name in names if name in chosen)


def _sizes(text: str) -> tuple[int, ...]:
    found = tuple(sorted(set(quantities.parse_sizes(text))))
    if found[0] < ITEM or any(size % ITEM for size in found):
        raise QuestionError(
            f"--sizes {text!r} must be multiples of the {ITEM} bytes of one {DTYPE}"
        )
    return found
