"""What this process has of shared memory: segments of its own, and those of others that it maps.

Each segment is made, and mapped, once, however many communicators use it. It goes when the last of
its users goes: the registry itself keeps nothing.
"""

from __future__ import annotations

import itertools
import os
import resource
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from hbmcomm.memory.policy import kernel
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared import segment as segments
from hbmcomm.memory.shared.heap import STEP, lib
from hbmcomm.memory.shared.own import Ordinary, Own, bind
from hbmcomm.memory.shared.segment import Notice, Segment, Way

T = TypeVar("T", bound=Own)

ADDRESS_SPACE = 2**46
"""Bytes of address space for the arrays of all ranks: x86-64 gives a process 2**47."""
ORDINARY_BYTES = 2**34
"""Bytes reserved for control blocks and staging; memory comes as it is needed."""
LEAST_ARRAYS, LEAST_ORDINARY = 32 * 2**20, 8 * 2**20
"""With less address space than this, shared memory is of no use."""


class Lengths(NamedTuple):
    """Bytes to reserve for a process's ordinary memory and for its arrays."""

    ordinary: int
    arrays: int

    def at_most(self, arrays: int | None) -> Lengths:
        """Shorter ones, of which the arrays have at most so many bytes."""
        if arrays is None or arrays >= self.arrays:
            return self
        arrays = max(arrays, LEAST_ARRAYS) // STEP * STEP
        return Lengths(min(self.ordinary, max(arrays // 4, LEAST_ORDINARY)) // STEP * STEP, arrays)


def lengths(ranks: int) -> Lengths:
    """What each of so many ranks should reserve.

    As many bytes as the machine has memory, within each rank's share of the address space. Under a
    limit of address space (ulimit -v) the segments of all ranks take half of what is left.
    """
    memory = os.sysconf("SC_PHYS_PAGES") * kernel.PAGE
    most = ADDRESS_SPACE // max(ranks, os.cpu_count() or 1)
    found = Lengths(min(memory, ORDINARY_BYTES), min(memory, most))
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        share = max(limit - pages * kernel.PAGE, 0) // 2 // ranks
        found = found.at_most(share * 3 // 4)
    return Lengths(*(nbytes // STEP * STEP for nbytes in found))


class Registry:
    """The segments of a process, by what they are for, and the mappings of others' by identity."""

    def __init__(self) -> None:
        self._own: weakref.WeakValueDictionary[tuple[object, ...], Own]
        self._own = weakref.WeakValueDictionary()
        self._mapped: weakref.WeakValueDictionary[tuple[int, int, str], Segment]
        self._mapped = weakref.WeakValueDictionary()
        self._numbers = itertools.count()
        self._making = threading.RLock()  # Python may collect what makes segments, at any step

    def ordinary(self, way: Way, nbytes: int, most: int | None, fresh: bool) -> Ordinary:
        """The ordinary segment of this process; arguments and errors as for `arrays`."""

        def build() -> Ordinary:
            segment = segments.make(way, nbytes)
            try:
                return Ordinary(segment)
            except BaseException:
                segment.hide()
                raise

        return self._have(("ordinary", way), most, fresh, build)

    def arrays(self, kind: Kind, way: Way, nbytes: int, most: int | None, fresh: bool) -> Own:
        """The segment of this process for arrays of a kind.

        Args:
            kind: Kinds with the same nodes and policy share a segment.
            way: How others find it.
            nbytes: The length of a new one.
            most: Only a segment of at most so many bytes will do; None: any length.
            fresh: Only a segment that further processes can find will do.

        Raises:
            OSError: This way is closed here, or to a segment of that length.
            KindUnavailable: The kernel refuses to bind memory to the nodes.
        """

        def build() -> Own:
            segment = segments.make(way, nbytes)
            try:
                bind(kind, segment)
                return Own(kind, segment)
            except BaseException:
                segment.hide()
                raise

        return self._have(("arrays", kind.policy, kind.nodes, way), most, fresh, build)

    def find(self, notice: Notice) -> Segment:
        """A segment of any process, mapped here.

        Raises:
            OSError: It cannot be found or mapped.
        """
        for own in list(self._own.values()):
            if own.segment.notice.identity == notice.identity:
                return own.segment
        found = self._mapped.get(notice.identity)
        if found is None:
            found = segments.find(notice)
            self._mapped[notice.identity] = found
        if found.nbytes != notice.nbytes:
            raise FileNotFoundError(f"{notice.path} has {found.nbytes:,} bytes")
        return found

    def _have(
        self, purpose: tuple[object, ...], most: int | None, fresh: bool, build: Callable[[], T]
    ) -> T:
        """The longest segment that serves a purpose, or a new one."""
        key = (lib.hbm_forks(), *purpose)  # a child of a fork makes its own
        with self._making:
            here = [own for name, own in list(self._own.items()) if name[:-1] == key]
            here = [own for own in here if most is None or own.nbytes <= most]
            here = [own for own in here if not (fresh and own.hidden)]
            if here:
                found: T = max(here, key=lambda own: own.nbytes)  # type: ignore[assignment]
                return found
            made = build()
            self._own[(*key, next(self._numbers))] = made
            return made


HERE = Registry()
"""Of this process."""
