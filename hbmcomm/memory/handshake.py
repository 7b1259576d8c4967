"""One handshake of all ranks to share memory by one method: each offers its own, and maps others'.

It takes two exchanges. After the first, every rank has the offers of all; after the second, it
knows that every rank could map all memory. Each rank checks an offer before it uses it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hbmcomm.errors import HbmcommError, OutOfMemory
from hbmcomm.memory import consensus, idle_limit, kernel, procfs, segment_cache
from hbmcomm.memory.arena import Arena, Membership, RankMemory
from hbmcomm.memory.consensus import TOO_LONG, Allgather, Problem, SharingRefused
from hbmcomm.memory.kinds import Kind
from hbmcomm.memory.pool import lib
from hbmcomm.memory.segment import Locator
from hbmcomm.memory.segment_cache import PeerMemory, Provider, SharingMethod

T = TypeVar("T")

Begin = Callable[[Arena, list[Any]], object]

_LINE = 64
"""Bytes of a cache line."""


class Wish(NamedTuple):
    """What a rank wants."""

    kind: Kind
    idle_limit: int | None
    """Bytes of free memory to keep populated; None: the default."""
    extra: Any


class Offer(NamedTuple):
    """Where a rank has its memory, for the others."""

    ordinary: Locator | int
    arrays: Locator | int
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
    unlinked: bool


class Outcome(NamedTuple):
    """The result of a handshake; all but the arena is the same on every rank."""

    arena: Arena | None
    extras: list[Any]
    refused: str
    """Which rank failed, and why."""
    too_long: bool
    """Whether it may work with shorter segments."""
    longest: int
    """Bytes of the longest segment of arrays that a rank had or wanted."""
    unlinked: bool
    """Whether a rank offered memory that only ranks that have it mapped already can attach."""


class Handshake:
    """One rank's part in a handshake."""

    def __init__(self, allgather: Allgather, rank: int, size: int, control: int) -> None:
        self._allgather, self._rank, self._size = allgather, rank, size
        self._marks = -(-control // _LINE) * _LINE  # behind the block: one byte for each rank
        self._control_bytes = -(-(self._marks + size) // kernel.PAGE) * kernel.PAGE
        self._providers: list[Provider] = []
        self._control: int | None = None
        self._arena: Arena | None = None
        self._begun = False

    def run(
        self,
        wish: Callable[[], Wish],
        method: SharingMethod,
        most: int | None,
        fresh: bool,
        begin: Begin | None,
    ) -> Outcome:
        """The outcome.

        Args:
            most, fresh, begin: See `ProviderFactory` and `create_arena`.

        Raises:
            HbmcommError, ValueError: On every rank, of the first rank that has such an error.
        """
        created = False
        try:
            answers = list(self._allgather(self._answer(wish, method, most, fresh)))
            extras = [answer.extra for answer in answers]
            problems = [answer.problem for answer in answers]
            if not any(problems):
                offers = [answer.offer for answer in answers]
                _, problem = consensus.run_locally(lambda: self._map(wish(), offers, extras, begin))
                problems = list(self._allgather(problem))
            refused = consensus.first_problem(problems)
            created = refused is None
        finally:
            self._end(created)
        return Outcome(
            self._arena if created else None,
            extras,
            refused or "",
            any(failure is not None and failure.too_long for failure in problems),
            max(answer.longest for answer in answers),
            any(answer.unlinked for answer in answers),
        )

    def _answer(
        self, wish: Callable[[], Wish], method: SharingMethod, most: int | None, fresh: bool
    ) -> Answer:
        """Provide this rank's memory, and describe it for the others."""
        wanted, problem = consensus.run_locally(
            lambda: _beside_sharing(wish), (HbmcommError, ValueError)
        )
        if wanted is None:
            return Answer(None, None, problem, 0, False)
        lengths = segment_cache.lengths(self._size).at_most(most)

        def offer() -> Offer:
            for provide in (method.ordinary, method.arrays):
                self._providers.append(provide(wanted.kind, lengths, most, fresh))
            return self._offer(wanted, *self._providers)

        offered, problem = consensus.run_locally(offer)
        longest = max(
            (provider.pool.nbytes for provider in self._providers[1:]), default=lengths.arrays
        )
        unlinked = any(provider.unlinked for provider in self._providers)
        return Answer(offered, wanted.extra, problem, longest, unlinked)

    def _offer(self, wish: Wish, ordinary: Provider, arrays: Provider) -> Offer:
        """Allocate a control block of zeros."""
        for pool in {ordinary.pool, arrays.pool}:
            pool.run_deferred()
            default = idle_limit.default(pool.kind, self._size)
            pool.limit_idle(default if wish.idle_limit is None else wish.idle_limit)
        control = ordinary.pool.take(self._control_bytes, kernel.PAGE)
        self._control = control
        kernel.zero(ordinary.pool.address + control, self._control_bytes)
        return Offer(ordinary.locator, arrays.locator, control, _pid_namespace(), os.getpid())

    def _map(
        self, wish: Wish, offers: Sequence[Offer | None], extras: list[Any], begin: Begin | None
    ) -> None:
        """Map the memory of all ranks, and check that it can be used."""
        ordinary, arrays = self._providers
        boot = procfs.boot(Path("/proc"))
        ranks: list[RankMemory] = []
        peers: list[tuple[PeerMemory, PeerMemory]] = []
        for number, offer in enumerate(offers):
            try:
                if offer is None:
                    raise FileNotFoundError("it offers none")
                peers.append((ordinary.attach(offer.ordinary), arrays.attach(offer.arrays)))
                ranks.append(self._checked(offer, *peers[-1], boot))
            except Exception as error:  # an offer of another process may be of any form
                too_long = isinstance(error, OSError) and error.errno in TOO_LONG
                text = f"cannot map the memory of rank {number} ({error})"
                raise SharingRefused(text, too_long) from None
        if len({memory.control for memory in ranks}) < len(ranks):
            raise SharingRefused("two ranks offer the same control block")
        membership = Membership(
            self._rank,
            boot,
            tuple(memory.claim for memory in ranks),
            tuple(memory.control + self._marks for memory in ranks),
            tuple(theirs.mapped for theirs, _ in peers),
        )
        mapped = [theirs.mapped for _, theirs in peers]
        self._arena = Arena(wish.kind, ordinary.pool, arrays.pool, ranks, membership, mapped)
        if begin is not None:
            self._begun = True
            arena = self._arena
            _beside_sharing(lambda: begin(arena, extras))

    def _checked(
        self, offer: Offer, ordinary: PeerMemory, arrays: PeerMemory, boot: int
    ) -> RankMemory:
        """A rank's memory, once its offer is checked."""
        control, last = offer.control, ordinary.nbytes - self._control_bytes
        if not 0 <= control <= last or control % kernel.PAGE:
            raise FileNotFoundError(f"its control block cannot be at {control:,}")
        if not lib.hbm_is_claimed(ordinary.claim, boot):
            raise FileNotFoundError("its process is gone, or holds no claim there")
        here = offer.pid_namespace == _pid_namespace() != (0, 0)
        return RankMemory(
            control=ordinary.address + control,
            ordinary=ordinary.address,
            ordinary_bytes=ordinary.nbytes,
            arrays=arrays.address,
            array_bytes=arrays.nbytes,
            claim=ordinary.claim,
            pid=offer.pid if here else 0,
        )

    def _end(self, created: bool) -> None:
        """Unlink what has a name; after a failure give the control block back.

        Once `begin` was called it is not given back: a core in it may still write when it closes.
        """
        for provider in self._providers:
            provider.unlink()
        if created:
            return
        if self._arena is not None:
            self._arena.discard()
        if self._control is not None and not self._begun:
            self._providers[0].pool.heap.give(self._control)


def _beside_sharing(act: Callable[[], T]) -> T:
    """The result of what rules out no method of sharing when it fails.

    Raises:
        HbmcommError, ValueError: As `act`; HbmcommError for its errors of other types, such as that
            of a file of the system that cannot be read, OutOfMemory for a MemoryError.
    """
    try:
        return act()
    except (HbmcommError, ValueError):
        raise
    except MemoryError as error:
        raise OutOfMemory(f"no memory is left ({error})") from error
    except Exception as error:
        raise HbmcommError(f"{type(error).__name__}: {error}") from error


@cache
def _pid_namespace() -> tuple[int, int]:
    """Identity of this PID namespace; (0, 0) where the kernel does not give it."""
    try:
        state = Path("/proc/self/ns/pid").stat()
    except OSError:
        return 0, 0
    return state.st_dev, state.st_ino
