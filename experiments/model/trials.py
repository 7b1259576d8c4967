"""What is measured to place each threshold: operations, sizes, and values that take turns. Pure.

A threshold that parts two ways of doing the same is tried at its two extremes, so that any size can
be done either way in one launch. Others are tried at a few values each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from experiments.model.contender_names import DIRECT, changed
from experiments.model.lower_bound import BARRIER
from experiments.model.validation import Flag, Name, Number
from hbmcomm import Threshold

KIB, MIB = 2**10, 2**20
ITEM = 4  # bytes of one element
NEVER = 2**62
"""Bytes that no message has: what is done from this on is never done."""
SLOT = 32 * KIB
"""Bytes of the longest message that is short, whatever the thresholds say."""
REACH = 8
"""Sizes are tried from the threshold divided by this to the threshold times this."""

UP_TO, FROM, CHOICE = "up to", "from", "choice"
"""The way under test is taken up to the threshold, or from it on; CHOICE: a value is as it is."""


TABLE = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, config=TABLE)
class Cell:
    """One operation of one length."""

    operation: Name
    """Collective"""
    bytes: Number
    """Bytes per rank"""
    at: Number
    """Bytes that the threshold is compared with"""


@dataclass(frozen=True, config=TABLE)
class Trial:
    """How one threshold is measured, or why it is not.

    Attributes:
        values: of UP_TO and FROM the least and the most, at one of which each size goes the way
            under test and at the other goes the other way.
    """

    variable: Annotated[str, Field(strict=True, pattern="^HBMCOMM_[A-Z_]+$")]
    """Variable that sets a threshold"""  # and becomes a line for a shell
    unit: str
    """Its unit; empty of a switch"""
    now: Number
    """Its value in force"""
    default: Number
    """Its value without that variable"""
    way: str = CHOICE
    """`up to`, `from`: sizes that go the way under test; `choice`: a value is as it is"""
    values: tuple[Number, ...] = ()
    """Values that are tried beside the one in force"""
    cells: tuple[Cell, ...] = ()
    """Operations and sizes; none where it is not measured"""
    private: Flag = False
    """Whether over ordinary NumPy arrays"""
    why: str = ""
    """Why it is not measured; empty where it is"""

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
    "HBMCOMM_PUSH_BYTES": _Crossover(FROM, ("bcast", "gather"), (1, NEVER), 4 * KIB, 16 * MIB),
    "HBMCOMM_BY_NODE_BYTES": _Crossover(FROM, ("reduce", "allreduce"), (0, NEVER), KIB, 2 * MIB),
    "HBMCOMM_STREAM_BYTES": _Crossover(
        UP_TO, ("bcast", "allreduce"), (0, NEVER), 8 * MIB, 64 * MIB
    ),
}

_PRIVATE_ABOVE = {
    "HBMCOMM_SHORT_BYTES": "HBMCOMM_EAGER_BYTES",
    "HBMCOMM_FETCH_BYTES": "HBMCOMM_SHORT_BYTES",
    "HBMCOMM_FETCH_IDLE_BYTES": "HBMCOMM_SHORT_BYTES",
    "HBMCOMM_PUSH_BYTES": "HBMCOMM_SHORT_BYTES",
}
"""Thresholds that count for ordinary NumPy arrays; up to the other one these go a third way."""


_OF_ONE_GROUP = ("HBMCOMM_FETCH_IDLE_BYTES", "HBMCOMM_PUSH_BYTES")


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


def trials(thresholds: Sequence[Threshold], place: Place) -> tuple[Trial, ...]:
    """What is measured of each threshold in force."""
    now = {threshold.variable: threshold.value for threshold in thresholds}
    return tuple(_trial(threshold, now, place) for threshold in thresholds)


def _trial(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial:
    if not threshold.unit:
        return _left_out(threshold, A_SWITCH)
    if threshold.variable in _CROSSOVERS:
        return _crossover(threshold, now, place)
    choices = {
        "HBMCOMM_PIECE_BYTES": _piece_bytes,
        "HBMCOMM_FAN_IN": _fan_in,
        "HBMCOMM_PUSH_RANKS": _push_ranks,
    }
    choose = choices.get(threshold.variable)
    return choose(threshold, now, place) if choose else _left_out(threshold, TIMES)


def _crossover(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial:
    variable = threshold.variable
    if variable == "HBMCOMM_BY_NODE_BYTES" and place.nodes == 1:
        return _left_out(threshold, ONE_NODE)
    if variable in _OF_ONE_GROUP and not _is_one_group(now, place):
        return _left_out(threshold, NOBODY_IDLES)
    rule, above = _CROSSOVERS[variable], _PRIVATE_ABOVE.get(variable)
    first = max(rule.first, now[above] + 1) if above else rule.first
    last = rule.last
    if variable == "HBMCOMM_FETCH_IDLE_BYTES":  # from there on senders write, and nobody fetches
        last = min(last, now.get("HBMCOMM_PUSH_BYTES", NEVER) - 1)
    cells = tuple(
        Cell(operation, _per_rank(at, _scale(variable, operation, place.ranks), rule.way), at)
        for operation in rule.operations
        for at in _around(threshold.value, first, last)
    )
    if not cells:
        return _left_out(threshold, NOT_APART)
    return _made(threshold, rule.values, cells, rule.way, private=above is not None)


def _is_one_group(now: Mapping[str, int], place: Place) -> bool:
    return place.nodes == place.caches == 1 and place.ranks <= now["HBMCOMM_FAN_IN"]


def _around(value: int, first: int, last: int) -> list[int]:
    """Powers of two around a value, within bounds."""
    middle = min(max(value, first), last)
    low, high = max(first, middle // REACH), min(last, middle * REACH)
    powers = (2**power for power in range(last.bit_length()))
    return [power for power in powers if low <= power <= high]


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
    return replace(
        _left_out(threshold, ""),
        way=way,
        values=tuple(values),
        cells=tuple(cells),
        private=private,
    )


def _left_out(threshold: Threshold, why: str) -> Trial:
    given = threshold.variable, threshold.unit, threshold.value, threshold.default
    return Trial(*given, why=why)


def _piece_bytes(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial:
    if _is_one_group(now, place):
        return _left_out(threshold, NOBODY_PASSES_ON)
    values = [value for value in _PIECES if value != threshold.value]
    cells = [Cell("bcast", size, size) for size in (MIB, 4 * MIB)]
    return _made(threshold, values, cells, private=True)


def _fan_in(threshold: Threshold, _: Mapping[str, int], place: Place) -> Trial:
    if place.ranks == 2:
        return _left_out(threshold, ONE_TREE)
    values = [value for value in _FAN_INS if value < place.ranks and value != threshold.value]
    if threshold.value < place.ranks:
        values += [value for value in _FAN_INS if value >= place.ranks][:1]  # one group of all
    cells = [Cell(BARRIER, 0, 0), Cell("bcast", 64, 64), Cell("allreduce", 64, 64)]
    return _made(threshold, values, cells)


def _push_ranks(threshold: Threshold, now: Mapping[str, int], place: Place) -> Trial:
    if not _is_one_group(now, place):
        return _left_out(threshold, NO_ROOT_COPIES)
    other = place.ranks - 1 if place.ranks <= threshold.value else place.ranks
    cells = [Cell("bcast", size, size) for size in (64 * KIB, 512 * KIB, 4 * MIB)]
    return _made(threshold, [other], cells)
