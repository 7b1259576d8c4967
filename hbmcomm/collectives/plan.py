"""Persistent collectives: arguments read once, then run again and again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from hbmcomm.collectives.core import ffi, lib
from hbmcomm.errors import HbmcommError

_run = lib.hbm_run


class Plan:
    """What the `*_init` calls of transport `direct` return.

    `plan()` runs the collective. `Start` and `Wait` or `Test` do the same in MPI's two parts: the
    work is done in the second, and plans that were started together are run in the order in which
    they were started, which must be the same on every rank.
    """

    __slots__ = ("_call", "_core", "_otherwise", "_started", "_waits")

    def __init__(
        self, core: Any, call: Any, otherwise: Callable[[int], None], started: deque[Plan]
    ) -> None:
        """Args:
        core, call: what the core's run takes.
        otherwise: what to do with a status of the core that is not 0.
        started: the plans of this communicator that wait for their turn.
        """
        self._core = core
        self._call = call
        self._otherwise = otherwise
        self._started = started
        self._waits = False

    def __call__(self) -> None:
        status = _run(self._core, self._call)
        if status:
            self._otherwise(status)

    def Start(self) -> None:
        """Let the collective begin: buffers must not be touched until it is waited for."""
        if self._waits:
            raise HbmcommError("this plan was started before and is not waited for yet: Wait()")
        self._waits = True
        self._started.append(self)

    def Wait(self) -> bool:
        """Run the collective to its end, after those started before it."""
        while self._waits:
            first = self._started.popleft()
            first._waits = False
            first()
        return True

    def Test(self) -> bool:
        """The same as Wait: there is nothing that could go on meanwhile."""
        return self.Wait()

    def Free(self) -> None:
        """Let go of the buffers."""
        if self._waits:
            raise HbmcommError("this plan is started; Wait() before Free()")
        self._call, self._otherwise = ffi.NULL, _freed


def _freed(_status: int) -> None:
    raise HbmcommError("this plan was freed; make a new one with the *_init call")
