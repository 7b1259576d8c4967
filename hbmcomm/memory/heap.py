"""Which stretches of a range are free: first fit, neighbours joined. Knows offsets, no memory."""

from __future__ import annotations

import bisect
import threading
from collections import deque
from typing import NamedTuple


class Stretch(NamedTuple):
    """Offsets from `start` up to `end`."""

    start: int
    end: int


class Heap:
    """The stretches of a range that no one uses, in order of their offsets; safe in threads.

    Python may collect an array, and so give back, at any step of this very code. Giving back
    therefore only notes the stretch, which one call of deque's does whole; the next one who takes
    joins it to the others.
    """

    def __init__(self, start: int, end: int) -> None:
        self._free = [Stretch(start, end)]
        self._back: deque[Stretch] = deque()
        self._lock = threading.Lock()  # of `_free`

    def take(self, nbytes: int, alignment: int, above: int = 0) -> Stretch | None:
        """The lowest free stretch of that size on a multiple of `alignment`, if there is one.

        Args:
            nbytes, alignment: What is asked for.
            above: It starts at this offset or after it.
        """
        with self._lock:
            self._join()
            for index, free in enumerate(self._free):
                start = -(-max(free.start, above) // alignment) * alignment
                if start + nbytes <= free.end:
                    taken = Stretch(start, start + nbytes)
                    rest = (Stretch(free.start, start), Stretch(taken.end, free.end))
                    self._free[index : index + 1] = [each for each in rest if each.start < each.end]
                    return taken
        return None

    def give(self, back: Stretch) -> None:
        """Make a stretch free that was taken."""
        self._back.append(back)

    @property
    def free(self) -> tuple[Stretch, ...]:
        """What is free, in order."""
        with self._lock:
            self._join()
            return tuple(self._free)

    def _join(self) -> None:
        while self._back:
            back = self._back.popleft()
            index = bisect.bisect_left(self._free, back)
            if index < len(self._free) and self._free[index].start == back.end:
                back = Stretch(back.start, self._free.pop(index).end)
            if index and self._free[index - 1].end == back.start:
                index -= 1
                back = Stretch(self._free.pop(index).start, back.end)
            self._free.insert(index, back)
