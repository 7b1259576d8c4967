"""The thresholds by which transport direct selects algorithms, each with its variable.

Defaults depend on the caches of the ranks, and on whether each rank has a CPU. A variable of rank
0's environment changes a threshold for all ranks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hbmcomm.errors import HbmcommError
from hbmcomm.memory import cpu_location
from hbmcomm.memory.machine import current
from hbmcomm.memory.topology import Cache
from hbmcomm.quantities import BYTES, KIB, MIB, parse_quantity

DEFAULT_CACHE = 32 * MIB
"""Bytes of last-level cache where sysfs shows none, as in many virtual machines."""
MOST_CACHE = 16 * MIB
"""Bytes for each CPU that shares a cache: a virtual machine may show all of its host's."""
SLOT_BYTES = 32 * KIB
"""Bytes of a slot in the core (`hbm_slot_bytes`): no longer message can be short."""


def usable_bytes(cache: Cache) -> int:
    """Bytes of a last-level cache that its CPUs can use."""
    return min(cache.size_bytes, MOST_CACHE * len(cache.cpus))


class Ranks(NamedTuple):
    """What the defaults depend on."""

    crowded: bool
    """There are more ranks than CPUs for them, so that another synchronisation costs most."""
    cache_bytes: int
    """Bytes of the last-level caches of their CPUs together."""


class Entry(NamedTuple):
    """One threshold.

    Attributes:
        field: its name in the core's `hbm_tuning`.
        default: its value for some ranks.
        least, most: its allowed range.
        unit: "bytes", "ranks", "us" (microseconds), or "" for a switch.
    """

    field: str
    default: Callable[[Ranks], int]
    least: int
    most: int
    unit: str

    @property
    def variable(self) -> str:
        """The environment variable that changes it."""
        return "HBMCOMM_" + self.field.upper()

    @property
    def meaning(self) -> str:
        """One line for the user."""
        return _MEANINGS[self.field]


def _by_crowding(alone: int, crowded: int) -> Callable[[Ranks], int]:
    return lambda ranks: crowded if ranks.crowded else alone


def _always(value: int) -> Callable[[Ranks], int]:
    return lambda _: value


TABLE = (
    Entry("eager_bytes", _by_crowding(2 * KIB, SLOT_BYTES), 0, SLOT_BYTES, "bytes"),
    Entry("short_bytes", _always(SLOT_BYTES), 0, SLOT_BYTES, "bytes"),
    Entry("fold_bytes", _by_crowding(4 * KIB, SLOT_BYTES), 0, MIB, "bytes"),
    Entry("fetch_bytes", _always(64 * KIB), 1, 2**62, "bytes"),
    Entry("fetch_idle_bytes", _by_crowding(2**40, 128 * KIB), 1, 2**62, "bytes"),
    Entry("push_bytes", _by_crowding(64 * KIB, 2**62), 1, 2**62, "bytes"),
    Entry("pair_bytes", _by_crowding(48 * KIB, 0), 0, 2**62, "bytes"),
    Entry("piece_bytes", _always(256 * KIB), 64, 2**30, "bytes"),
    Entry("by_node_bytes", _always(32 * KIB), 0, 2**62, "bytes"),
    Entry("stream_bytes", lambda ranks: ranks.cache_bytes, 0, 2**62, "bytes"),
    Entry("fan_in", _always(8), 2, 1024, "ranks"),
    Entry("push_ranks", _always(8), 0, 1024, "ranks"),
    Entry("spin_us", _by_crowding(50, 0), 0, 10**6, "us"),
    Entry("yield_us", _by_crowding(500, 200), 0, 10**6, "us"),
    Entry("nap_us", _always(100), 1, 10**6, "us"),
    Entry("check_calls", _always(0), 0, 1, ""),
)

_MEANINGS = {
    "eager_bytes": (
        "a rank's message up to this is copied into its slot, and nobody waits for its readers"
    ),
    "short_bytes": (
        "the same for messages that are not in the arena, which others could not read in place"
    ),
    "fold_bytes": (
        "reductions of up to this, all ranks' inputs together, are folded along the groups; longer "
        "ones are shared out among the ranks"
    ),
    "fetch_bytes": (
        "a message from this on that is not in the arena is read by process_vm_readv where that "
        "works, else it is copied through staging buffers"
    ),
    "fetch_idle_bytes": (
        "the same in Bcast and Gather of few ranks, where whoever sends has nothing else to do than"
        " to copy into staging buffers"
    ),
    "push_bytes": (
        "in Bcast and Gather of few ranks, senders write messages from this on into their "
        "receivers' memory that is not in the arena, by process_vm_writev"
    ),
    "pair_bytes": (
        "an Allreduce of two ranks up to this that is not in the arena is folded whole by both; of "
        "a longer one each folds its half and copies the other"
    ),
    "piece_bytes": "what ranks copy at a time of a broadcast that they pass on",
    "by_node_bytes": "reductions from this on, all ranks' inputs together, go by NUMA node first",
    "stream_bytes": "operations that touch more than this store past the caches",
    "fan_in": "how many ranks or groups meet in one group at most",
    "push_ranks": (
        "up to so many ranks on one node, the root of a long broadcast copies its part as well"
    ),
    "spin_us": "how long a waiting rank only looks at the word that it waits for",
    "yield_us": "how long after that it gives its CPU to others between two looks",
    "nap_us": "its first sleep after that; each is twice the one before, up to 1 ms",
    "check_calls": (
        "1: ranks meet before each call that MPI serves and compare it; 0: the next call in which "
        "one waits in the core compares it"
    ),
}

_UNITS = {
    "bytes": BYTES,
    "ranks": {"": 1},
    "us": {"": 1, "us": 1, "ms": 1000},
    "": {"": 1},
}


_NAMES = {"bytes": "bytes", "ranks": "ranks", "us": "microseconds"}
_EXAMPLES = {"bytes": "4096 or 64KiB", "us": "50 or 2ms"}


TIMEOUT = "HBMCOMM_TIMEOUT"
"""Seconds that a rank waits for one of its host before it raises PeerError; 0: without end."""


def timeout(environ: Mapping[str, str] = os.environ) -> float:
    """What that variable says; 0 where it is not set.

    Raises:
        HbmcommError: It is no whole number.
    """
    text = environ.get(TIMEOUT, "").strip() or "0"
    value = parse_quantity(text, {"": 1, "s": 1})
    if value is None:
        raise HbmcommError(f"{TIMEOUT}={text}: write a whole number of seconds, such as 60")
    return float(value)


def asked(environ: Mapping[str, str] = os.environ) -> dict[str, int]:
    """The entries that the environment changes, by field.

    Raises:
        HbmcommError: A variable's value is not a number, or out of its range.
    """
    return {
        entry.field: _read(entry, environ[entry.variable])
        for entry in TABLE
        if environ.get(entry.variable, "").strip()
    }


def chosen(changes: Mapping[str, int], ranks: Ranks) -> dict[str, int]:
    """All entries, by field: the defaults for some ranks, and the changes of the environment.

    An eager message is also short: `short_bytes` is at least `eager_bytes`.
    """
    entries = {entry.field: changes.get(entry.field, entry.default(ranks)) for entry in TABLE}
    entries["short_bytes"] = max(entries["short_bytes"], entries["eager_bytes"])
    entries["piece_bytes"] = entries["piece_bytes"] // 64 * 64
    return entries


class Threshold(NamedTuple):
    """A threshold for some ranks of this machine.

    Attributes:
        variable: the environment variable that changes it.
        value: bytes, ranks, microseconds or a switch, as `unit` says.
        default: the value that it has without the variable.
        meaning: one line.
    """

    variable: str
    value: int
    default: int
    unit: str
    meaning: str


def tuning(ranks: int = 2) -> tuple[Threshold, ...]:
    """The thresholds of transport direct for so many ranks on this machine.

    Raises:
        HbmcommError: A variable's value is not a number, or out of its range.
    """
    caches = sum(usable_bytes(cache) for cache in current().caches if cache.node is None)
    here = Ranks(
        cpu_location.usable_cpus([cpu_location.of_this_process()]) < ranks, caches or DEFAULT_CACHE
    )
    values, defaults = chosen(asked(), here), chosen({}, here)
    return tuple(
        Threshold(
            entry.variable, values[entry.field], defaults[entry.field], entry.unit, entry.meaning
        )
        for entry in TABLE
    )


def _read(entry: Entry, text: str) -> int:
    value = parse_quantity(text, _UNITS[entry.unit])
    if value is None and not entry.unit:
        raise HbmcommError(f"{entry.variable}={text} is not a switch; write 0 or 1")
    if value is None:
        raise HbmcommError(
            f"{entry.variable}={text} is not a number of {_NAMES[entry.unit]}; write a whole number"
            + (f", such as {_EXAMPLES[entry.unit]}" if entry.unit in _EXAMPLES else "")
        )
    if not entry.least <= value <= entry.most:
        raise HbmcommError(
            f"{entry.variable}={text} is out of range; it may be {entry.least:,} to "
            f"{entry.most:,} {entry.unit}".rstrip()
        )
    return value
