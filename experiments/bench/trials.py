"""What is measured to place each threshold: operations, sizes, and values that take turns. Pure.

A threshold that parts two ways of doing the same is tried at its two extremes, so that any size can
be done either way in one launch. Others are tried at a few values each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from experiments.bench.question import ITEM
from experiments.model.contender_names import DIRECT, changed
from experiments.model.lower_bound import BARRIER
from hbmcomm import Threshold

KIB, MIB = 2**10, 2**20
NEVER = 2**62
"""Bytes that no message has: what is done from this on is never done."""
SLOT = 32 * KIB
"""Bytes of the longest message that is short, whatever the thresholds say."""
REACH = 8
"""Sizes are tried from the threshold divided by this to the threshold times this."""

UP_TO, FROM, CHOICE = "up to", "from", "choice"
"""The way under test is taken up to the threshold, or from it on; CHOICE: a value is as it is."""


@dataclass(frozen=True)
class Cell:
    """One operation of one length.

    Attributes:
        bytes: per rank.
        at: bytes that the threshold is compared with.
    """

    operation: str
    bytes: int
    at: int


@dataclass(frozen=True)
class Trial:
    """How one threshold is measured.

    Attributes:
        variable: changes the threshold.
        now: its value in force.
        way: UP_TO, FROM or CHOICE.
        values: tried beside `now`. Of UP_TO and FROM: the least and the most, at one of which each
            size goes the way under test and at the other goes the other way.
        private: over ordinary NumPy arrays instead of the arena's.
    """

    variable: str
    unit: str
    now: int
    way: str
    values: tuple[int, ...]
    cells: tuple[Cell, ...]
    private: bool = False

    @property
    def with_way(self) -> int:
        """The value with which each size goes the way under test."""
        return self.values[1] if self.way == UP_TO else self.values[0]

    @property
    def without_way(self) -> int:
        """The value with which none does."""
        return self.values[0] if self.way == UP_TO else self.values[1]

    def contender(self, value: int) -> str:
        """Transport direct with another value than that in force."""
        return changed(self.variable, value)

    @property
    def contenders(self) -> tuple[str, ...]:
        """What takes turns in each of its cells."""
        return (DIRECT, *map(self.contender, self.values))

    def in_force(self, at: int) -> bool:
        """Whether the value in force sends so many bytes the way under test."""
        return at <= self.now if self.way == UP_TO else at >= self.now


class Place(NamedTuple):
    """Where the ranks are.

    Attributes:
        nodes: NUMA nodes of their CPUs.
        caches: last-level caches of their CPUs; 1 where the machine shows none.
    """

    ranks: int
    nodes: int
    caches: int


class _Crossover(NamedTuple):
    """A threshold that parts two ways.

    Attributes:
        operations: that go either way.
        values: the least and the most that are tried.
        first, last: bytes at which the ways differ at all, and that are quickly measured.
    """

    way: str
    operations: tuple[str, ...]
    values: tuple[int, int]
    first: int
    last: int


_CROSSOVERS = {
    "HBMCOMM_EAGER_BYTES": _Crossover(UP_TO, ("bcast", "gather", "allgather"), (0, SLOT), 64, SLOT),
    "HBMCOMM_SHORT_BYTES": _Crossover(UP_TO, ("bcast", "gather", "allgather"), (0, SLOT), 64, SLOT),
    "HBMCOMM_FOLD_BYTES": _Crossover(UP_TO, ("reduce", "allreduce"), (0, MIB), 128, 2 * SLOT),
    "HBMCOMM_FETCH_BYTES": _Crossover(
        FROM, ("allgather", "alltoall"), (1, NEVER), 4 * KIB, 2 * MIB
    ),
    "HBMCOMM_FETCH_IDLE_BYTES": _Crossover(
        FROM, ("bcast", "gather"), (1, NEVER), 4 * KIB, 16 * MIB
    ),
    "HBMCOMM_BY_NODE_BYTES": _Crossover(FROM, ("reduce", "allreduce"), (0, NEVER), KIB, 2 * MIB),
    "HBMCOMM_STREAM_BYTES": _Crossover(
        UP_TO, ("bcast", "allreduce"), (0, NEVER), 8 * MIB, 64 * MIB
    ),
}

_PRIVATE_ABOVE = {
    "HBMCOMM_SHORT_BYTES": "HBMCOMM_EAGER_BYTES",
    "HBMCOMM_FETCH_BYTES": "HBMCOMM_SHORT_BYTES",
    "HBMCOMM_FETCH_IDLE_BYTES": "HBMCOMM_SHORT_BYTES",
}
"""Thresholds that count for ordinary NumPy arrays; up to the other one these go a third way."""


def _scale(variable: str, operation: str, ranks: int) -> int:
    """Bytes that a threshold is compared with, over bytes per rank."""
    if variable in ("HBMCOMM_FOLD_BYTES", "HBMCOMM_BY_NODE_BYTES"):
        return ranks  # the inputs of all
    if variable == "HBMCOMM_STREAM_BYTES":
        return ranks if operation == "bcast" else 2 * ranks  # what all touch
    return 1


_PIECES = (64 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB)
_FAN_INS = (2, 4, 8, 16, 32)

TIMES = "times are not measured: they depend on what else the machine does"
ONE_NODE = "the CPUs of these ranks are on one NUMA node"
NOBODY_PASSES_ON = "these ranks form one group, in which nobody passes data on"
ONE_TREE = "two ranks form the same group with any value"
NOBODY_IDLES = "these ranks form several groups, for which HBMCOMM_FETCH_BYTES counts"
NO_ROOT_COPIES = "these ranks form several groups, between which the root does not copy"
A_SWITCH = "it is a switch for finding mistakes in programs, not a threshold"
NOT_APART = "with the other values in force no length goes one way or the other"


def trials(found: Sequence[Threshold], place: Place) -> tuple[tuple[Trial, ...], dict[str, str]]:
    """What is measured of the thresholds in force, and by variable why the others are not."""
    now = {each.variable: each.value for each in found}
    planned: list[Trial] = []
    left_out: dict[str, str] = {}
    for each in found:
        made = _trial(each, now, place)
        if isinstance(made, str):
            left_out[each.variable] = made
        else:
            planned.append(made)
    return tuple(planned), left_out


def _trial(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial | str:
    """How a threshold is measured, or why it is not."""
    if not threshold.unit:
        return A_SWITCH
    if threshold.variable in _CROSSOVERS:
        return _crossover(threshold, now, place)
    choices = {
        "HBMCOMM_PIECE_BYTES": _piece_bytes,
        "HBMCOMM_FAN_IN": _fan_in,
        "HBMCOMM_PUSH_RANKS": _push_ranks,
    }
    choose = choices.get(threshold.variable)
    return choose(threshold, now, place) if choose else TIMES


def _crossover(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial | str:
    variable = threshold.variable
    if variable == "HBMCOMM_BY_NODE_BYTES" and place.nodes == 1:
        return ONE_NODE
    if variable == "HBMCOMM_FETCH_IDLE_BYTES" and not _is_one_group(now, place):
        return NOBODY_IDLES
    rule, above = _CROSSOVERS[variable], _PRIVATE_ABOVE.get(variable)
    first = max(rule.first, now[above] + 1) if above else rule.first
    cells = tuple(
        Cell(operation, _per_rank(at, _scale(variable, operation, place.ranks), rule.way), at)
        for operation in rule.operations
        for at in _around(threshold.value, first, rule.last)
    )
    if not cells:
        return NOT_APART
    return _made(threshold, rule.values, cells, rule.way, private=above is not None)


def _is_one_group(now: Mapping[str, int], place: Place) -> bool:
    return place.nodes == place.caches == 1 and place.ranks <= now["HBMCOMM_FAN_IN"]


def _around(value: int, first: int, last: int) -> list[int]:
    """Powers of two around a value, within bounds."""
    middle = min(max(value, first), last)
    low, high = max(first, middle // REACH), min(last, middle * REACH)
    powers = (2**power for power in range(last.bit_length()))
    return [each for each in powers if low <= each <= high]


def _per_rank(at: int, scale: int, way: str) -> int:
    """Whole items per rank, on the side of a threshold of `at` that goes the way under test."""
    items, rest = divmod(at, scale * ITEM)
    return ITEM * max(1, items + (way == FROM and rest > 0))


def _made(
    threshold: Threshold,
    values: Sequence[int],
    cells: Sequence[Cell],
    way: str = CHOICE,
    private: bool = False,
) -> Trial:
    """The trial of a threshold with its value in force and its unit."""
    now, unit = threshold.value, threshold.unit
    return Trial(threshold.variable, unit, now, way, tuple(values), tuple(cells), private)


def _piece_bytes(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial | str:
    if _is_one_group(now, place):
        return NOBODY_PASSES_ON
    values = [each for each in _PIECES if each != threshold.value]
    cells = [Cell("bcast", size, size) for size in (MIB, 4 * MIB)]
    return _made(threshold, values, cells, private=True)


def _fan_in(threshold: Threshold, _: Mapping[str, int], place: Place) -> Trial | str:
    if place.ranks == 2:
        return ONE_TREE
    values = [each for each in _FAN_INS if each < place.ranks and each != threshold.value]
    if threshold.value < place.ranks:
        values += [each for each in _FAN_INS if each >= place.ranks][:1]  # one group of all
    cells = [Cell(BARRIER, 0, 0), Cell("bcast", 64, 64), Cell("allreduce", 64, 64)]
    return _made(threshold, values, cells)


def _push_ranks(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial | str:
    if not _is_one_group(now, place):
        return NO_ROOT_COPIES
    other = place.ranks - 1 if place.ranks <= threshold.value else place.ranks
    cells = [Cell("bcast", size, size) for size in (64 * KIB, 512 * KIB, 4 * MIB)]
    return _made(threshold, [other], cells)
