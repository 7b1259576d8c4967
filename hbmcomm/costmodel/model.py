"""A model of an operation: its algorithm's counts, weighed by parameters, on a machine.

Parameters are relative to the machine's own speeds, so that another machine can take its place.
fitting.py finds them.
"""

from __future__ import annotations

from typing import NamedTuple

from hbmcomm.costmodel.counts import ALGORITHMS, Counts
from hbmcomm.costmodel.machine import Machine
from hbmcomm.costmodel.shared import SHARED


class Parameters(NamedTuple):
    """What weighs the parts of a time; see parts_of_a_time().

    Attributes:
        call: seconds of a call itself.
        alpha: of a message or flag, in latencies of the machine.
        turn: seconds that a message or flag waits for a CPU, for each other rank that has it.
        beta: of a byte on the longest path, over a core's time to copy one in its caches.
        memory: of a byte on the longest path that is in no cache, over a rank's time to copy one.
        gamma: of a folded byte, over a core's time to copy one in its caches.
    """

    call: float
    alpha: float
    turn: float
    beta: float
    memory: float
    gamma: float


class Absolute(NamedTuple):
    """The parameters of two ranks on a machine.

    Attributes:
        call, alpha: seconds of a call, and of each message or flag.
        beta, memory: seconds of a byte in caches, and of one that is not.
        gamma: seconds of a folded byte.
    """

    call: float
    alpha: float
    beta: float
    memory: float
    gamma: float


class Part(NamedTuple):
    """What messages up to a length, or from there on, are modelled by."""

    algorithm: str
    parameters: Parameters


class Model(NamedTuple):
    """How long an operation takes.

    Attributes:
        kind: of the memory that the messages are in.
        share: of the caches, what ranks can keep in them between two calls.
        switch: bytes up to which messages are `short`, and else `long`.
    """

    operation: str
    kind: str
    share: float
    switch: int
    short: Part
    long: Part

    def seconds(
        self,
        ranks: int,
        nbytes: int,
        machine: Machine,
        *,
        kind: str | None = None,
        packed: bool = False,
        cycle: int = 0,
    ) -> float:
        """The time of a call; 0 where there is one rank.

        Args:
            nbytes: of a rank's message.
            kind: of the memory, another one than the model was fitted in.
            packed: ranks fill one NUMA node after the other.
            cycle: bytes of all the messages that a rank has in turn, such as a network's gradients:
                caches must hold them all until this one's turn comes again; 0: only this one.
        """
        if ranks < 2:
            return 0.0
        part = self.short if nbytes <= self.switch else self.long
        count = {**ALGORITHMS[self.operation], "shared": SHARED[self.operation]}[part.algorithm]
        parts = parts_of_a_time(
            count(ranks, nbytes),
            ranks,
            nbytes,
            machine,
            self.kind if kind is None else kind,
            self.share,
            packed=packed,
            cycle=cycle,
        )
        return sum(weight * term for weight, term in zip(part.parameters, parts, strict=True))

    def absolute(self, machine: Machine, long: bool = True) -> Absolute:
        """The parameters in seconds and seconds per byte, of two ranks."""
        weights = (self.long if long else self.short).parameters
        own = machine.cache.speed(1)
        return Absolute(
            weights.call,
            weights.alpha * machine.latency,
            weights.beta / own,
            2 * weights.memory / machine.speed(self.kind, 2),
            weights.gamma / own,
        )


def parts_of_a_time(
    counts: Counts,
    ranks: int,
    nbytes: int,
    machine: Machine,
    kind: str,
    share: float,
    *,
    packed: bool = False,
    cycle: int = 0,
) -> tuple[float, ...]:
    """What each of Parameters is multiplied by.

    Where ranks outnumber cores, they wait for the others' turns. What all ranks send and receive in
    a cycle is in caches until it is more than a share of them, and in none from twice that on.
    """
    turns = max(1.0, ranks / machine.cores)
    touched = 2.0 * ranks * max(nbytes, cycle)  # what is sent, and as much received
    room = share * machine.cache_bytes
    missed = min(1.0, max(0.0, (touched - room) / room))
    near, far = 1 - missed, missed / machine.speed(kind, ranks, packed)
    own = machine.cache.speed(1) / turns
    return (
        1.0,
        counts.messages * machine.latency,
        counts.messages * (turns - 1),
        counts.sent * near / own,
        counts.sent * ranks * far,
        counts.folded * near / own,
    )
