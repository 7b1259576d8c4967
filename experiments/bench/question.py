"""What a bench is asked: operations, sizes, ranks, forms and peers, as its flags say. Pure."""

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from experiments import quantities, spec
from experiments.bench.names import CALLS, FORMS, PEERS, PERSISTENT, PLAIN
from experiments.environments.mpiexec import FLAVOURS
from experiments.errors import ExperimentsError
from experiments.spec import Measurement

USUAL = ("bcast", "gather", "allreduce")
USUAL_FORMS = (PLAIN, PERSISTENT)
SIZES = "8:16MiB:8"
BLOCKS = 6  # the fewest that give an interval
MOST_RANKS = 16  # that are taken unasked
DTYPE = "float32"
ITEM = 4  # bytes of one element

CAP = 0.04  # seconds for one contender in one cell, warm-up not counted
MIN_ITERATIONS = 5
MAX_ITERATIONS = 500


class QuestionError(ExperimentsError):
    """A flag of a bench says something that cannot be meant."""


@dataclass(frozen=True)
class Question:
    """What is compared with what.

    Attributes:
        operations: keys of CALLS.
        sizes: bytes per rank.
        peers: of PEERS.
        private: over ordinary NumPy arrays instead of the arena's.
        blocks: launches of each MPI in each setting with each rank count.
        named: the peers were named by the user, so that one that cannot be had is an error.
        forms: of FORMS.
        tuned: each MPI in each of its settings (experiments.bench.settings).
        against: a checkout or installed tree of another build of the library; "": none.
    """

    operations: tuple[str, ...]
    sizes: tuple[int, ...]
    ranks: tuple[int, ...]
    peers: tuple[str, ...] = PEERS
    private: bool = False
    blocks: int = BLOCKS
    named: bool = False
    forms: tuple[str, ...] = USUAL_FORMS
    tuned: bool = False
    against: str = ""
    measurement: Measurement = field(
        default_factory=lambda: Measurement(
            time_cap=CAP, min_iterations=MIN_ITERATIONS, max_iterations=MAX_ITERATIONS
        )
    )

    @property
    def flavours(self) -> tuple[str, ...]:
        """The MPIs that launches are started with; one is needed even if none is a peer."""
        return tuple(peer for peer in self.peers if peer in FLAVOURS) or FLAVOURS[:1]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as bench.json holds them."""
        return asdict(self)


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
) -> Question:
    """The question that flags ask; an empty one means the usual.

    Raises:
        ExperimentsError: naming the flag, what it said and what it may say.
    """
    counts = tuple(quantities.parse_ranks(ranks)) if ranks else (min(max(2, cores), MOST_RANKS),)
    if min(counts) < 2:
        raise QuestionError(f"--ranks {ranks!r}: a collective needs 2 ranks or more")
    quantities.check_rank_counts(counts, cores)
    if cadence and cadence not in spec.CADENCES:
        raise QuestionError(f"--cadence {cadence!r} is not one of {', '.join(spec.CADENCES)}")
    return Question(
        operations=_operations(operations),
        sizes=_sizes(sizes or SIZES),
        ranks=tuple(sorted(set(counts))),
        peers=_peers(peers),
        private=private,
        blocks=blocks or BLOCKS,
        named=bool(peers),
        forms=_forms(forms),
        tuned=tuned,
        against=against,
        measurement=Measurement(
            cadence=cadence or "isolated",
            time_cap=CAP,
            min_iterations=MIN_ITERATIONS,
            max_iterations=MAX_ITERATIONS,
        ),
    )


def _operations(text: str) -> tuple[str, ...]:
    """Operations of "Allreduce,bcast" or "all"; mpi4py's names and ours, in any case."""
    if not text:
        return USUAL
    if text == "all":
        return tuple(CALLS)
    known = {call.lower(): name for name, call in CALLS.items()} | {name: name for name in CALLS}
    wanted = {_one_of("--ops", part, part.strip().lower(), known) for part in text.split(",")}
    chosen = {known[part] for part in wanted}
    return tuple(name for name in CALLS if name in chosen)


def _peers(text: str) -> tuple[str, ...]:
    if not text:
        return PEERS
    chosen = {_one_of("--peers", part, part.strip().lower(), PEERS) for part in text.split(",")}
    return tuple(peer for peer in PEERS if peer in chosen)


def _forms(text: str) -> tuple[str, ...]:
    if not text:
        return USUAL_FORMS
    chosen = {_one_of("--forms", part, part.strip().lower(), FORMS) for part in text.split(",")}
    return tuple(form for form in FORMS if form in chosen)


def _sizes(text: str) -> tuple[int, ...]:
    found = tuple(sorted(set(quantities.parse_sizes(text))))
    if found[0] < ITEM or any(size % ITEM for size in found):
        raise QuestionError(
            f"--sizes {text!r} must be multiples of the {ITEM} bytes of one {DTYPE}"
        )
    return found


def _one_of(flag: str, said: str, value: str, known: Iterable[str]) -> str:
    choices = list(known)
    if value in choices:
        return value
    near = difflib.get_close_matches(value, choices, n=1, cutoff=0.5)
    shown = CALLS.values() if flag == "--ops" else choices
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise QuestionError(f"{flag}: unknown {said!r}; {hint}Known: {', '.join(shown)}")
