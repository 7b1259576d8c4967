"""One try to share memory over one route: what a rank offers, and how it maps what others offer.

Two exchanges. After the first, every rank knows where all memory is; after the second, that every
rank could map all of it. Each rank checks what another offers before it uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.policy import kernel
from hbmcomm.memory.policy.kinds import Kind
from hbmcomm.memory.shared import agree, keep, registry
from hbmcomm.memory.shared.agree import TOO_LONG, Allgather, Closed, Problem
from hbmcomm.memory.shared.arena import Arena, Place, Roll
from hbmcomm.memory.shared.heap import lib
from hbmcomm.memory.shared.route import Found, Route, Source
from hbmcomm.memory.topology import procfs

Begin = Callable[[Arena, list[Any]], object]

LINE = 64


class Plan(NamedTuple):
    """What a rank wants."""

    kind: Kind
    keep: int | None
    """Bytes of free memory to keep populated, where the user says."""
    extra: Any


class Offer(NamedTuple):
    """Where a rank has its memory, for the others."""

    ordinary: Any
    arrays: Any
    control: int
    """Offset of its control block in its ordinary memory."""
    pid_namespace: tuple[int, int]
    pid: int


class Answer(NamedTuple):
    """What a rank sends in the first exchange."""

    offer: Offer | None
    extra: Any
    problem: Problem | None
    longest: int
    hidden: bool


class Outcome(NamedTuple):
    """How a try went; all but the arena is alike on every rank."""

    arena: Arena | None
    extras: list[Any]
    refused: str
    """Which rank failed, and why."""
    too_long: bool
    """Whether it may work with shorter segments."""
    longest: int
    """Bytes of the longest segment of arrays that a rank had or wanted."""
    hidden: bool
    """Whether a rank offered memory that only ranks that have it mapped already can find."""


class Attempt:
    """A try as one rank makes it."""

    def __init__(self, allgather: Allgather, rank: int, size: int, control: int) -> None:
        self._allgather, self._rank, self._size = allgather, rank, size
        self._marks = -(-control // LINE) * LINE  # behind the block: one byte for each rank
        self._control_bytes = -(-(self._marks + size) // kernel.PAGE) * kernel.PAGE
        self._sources: list[Source] = []
        self._control: int | None = None
        self._arena: Arena | None = None
        self._begun = False

    def run(
        self,
        plan: Callable[[], Plan],
        route: Route,
        most: int | None,
        fresh: bool,
        begin: Begin | None,
    ) -> Outcome:
        """What comes of it.

        Args:
            plan: What this rank wants.
            route: Where memory is had.
            most, fresh, begin: See `Choice` and `make`.

        Raises:
            HbmcommError, ValueError: On every rank, of the first rank that has such an error.
        """
        made = False
        try:
            answers = list(self._allgather(self._answer(plan, route, most, fresh)))
            extras = [each.extra for each in answers]
            problems = [each.problem for each in answers]
            if not any(problems):
                offers = [each.offer for each in answers]
                _, problem = agree.attempt(lambda: self._map(plan(), offers, extras, begin))
                problems = list(self._allgather(problem))
            refused = agree.first(problems)
            made = refused is None
        finally:
            self._end(made)
        return Outcome(
            self._arena if made else None,
            extras,
            refused or "",
            any(each is not None and each.too_long for each in problems),
            max(each.longest for each in answers),
            any(each.hidden for each in answers),
        )

    def _answer(
        self, plan: Callable[[], Plan], route: Route, most: int | None, fresh: bool
    ) -> Answer:
        """Have this rank's memory, and what to send of it."""
        wanted, problem = agree.attempt(plan, (HbmcommError, ValueError))
        if wanted is None:
            return Answer(None, None, problem, 0, False)
        lengths = registry.lengths(self._size).at_most(most)
        choices = (route.ordinary, route.arrays)

        def offer() -> Offer:
            for choice in choices:
                self._sources.append(choice(wanted.kind, lengths, most, fresh))
            return self._offer(wanted, *self._sources)

        offered, problem = agree.attempt(offer)
        longest = max((each.ground.nbytes for each in self._sources[1:]), default=lengths.arrays)
        hidden = any(each.hidden for each in self._sources)
        return Answer(offered, wanted.extra, problem, longest, hidden)

    def _offer(self, plan: Plan, ordinary: Source, arrays: Source) -> Offer:
        """Have a control block, of zeros."""
        for ground in {ordinary.ground, arrays.ground}:
            ground.look()
            ground.limit(keep.share(ground.kind, self._size) if plan.keep is None else plan.keep)
        control = ordinary.ground.take(self._control_bytes, kernel.PAGE)
        self._control = control
        kernel.zero(ordinary.ground.address + control, self._control_bytes)
        return Offer(ordinary.notice, arrays.notice, control, _pid_namespace(), os.getpid())

    def _map(
        self, plan: Plan, offers: Sequence[Offer | None], extras: list[Any], begin: Begin | None
    ) -> None:
        """Map the memory of all ranks, and see that it can be used."""
        ordinary, arrays = self._sources
        boot = procfs.boot(Path("/proc"))
        places: list[Place] = []
        found: list[tuple[Found, Found]] = []
        for number, offer in enumerate(offers):
            try:
                if offer is None:
                    raise FileNotFoundError("it offers none")
                found.append((ordinary.find(offer.ordinary), arrays.find(offer.arrays)))
                places.append(self._place(offer, *found[-1], boot))
            except Exception as error:  # what comes from another process may have any form
                too_long = isinstance(error, OSError) and error.errno in TOO_LONG
                text = f"cannot map the memory of rank {number} ({error})"
                raise Closed(text, too_long) from None
        if len({place.control for place in places}) < len(places):
            raise Closed("two ranks offer the same control block")
        roll = Roll(
            self._rank,
            boot,
            tuple(place.claim for place in places),
            tuple(place.control + self._marks for place in places),
            tuple(theirs.mapped for theirs, _ in found),
        )
        mapped = [theirs.mapped for _, theirs in found]
        self._arena = Arena(plan.kind, ordinary.ground, arrays.ground, places, roll, mapped)
        if begin is not None:
            self._begun = True
            begin(self._arena, extras)

    def _place(self, offer: Offer, ordinary: Found, arrays: Found, boot: int) -> Place:
        """Where a rank's memory is, once its offer is checked."""
        control, last = offer.control, ordinary.nbytes - self._control_bytes
        if not 0 <= control <= last or control % kernel.PAGE:
            raise FileNotFoundError(f"its control block cannot be at {control:,}")
        if not lib.hbm_is_taken(ordinary.claim, boot):
            raise FileNotFoundError("its process is gone, or holds no claim there")
        here = offer.pid_namespace == _pid_namespace() != (0, 0)
        return Place(
            control=ordinary.address + control,
            ordinary=ordinary.address,
            ordinary_bytes=ordinary.nbytes,
            arrays=arrays.address,
            array_bytes=arrays.nbytes,
            claim=ordinary.claim,
            pid=offer.pid if here else 0,
        )

    def _end(self, made: bool) -> None:
        """Hide what has a name; after a failure give the control block back.

        Once `begin` was called it is not given back: a core in it may still write when it closes.
        """
        for source in self._sources:
            source.hide()
        if made:
            return
        if self._arena is not None:
            self._arena.forget()
        if self._control is not None and not self._begun:
            self._sources[0].ground.heap.give(self._control)


@cache
def _pid_namespace() -> tuple[int, int]:
    """Which PID namespace this process is in; (0, 0) where the kernel does not say."""
    try:
        state = Path("/proc/self/ns/pid").stat()
    except OSError:
        return 0, 0
    return state.st_dev, state.st_ino
