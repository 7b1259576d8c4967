"""The communicators of DASO: the ranks of one host, one rank of each host, and all ranks.

It knows which ranks talk to each other, not about what.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.training.together import run_on_all


class Communicators:
    """All of one rank; collective to make and to free.

    Args:
        comm: Any intracommunicator.
        host: A number of this rank's host; ranks of one host have the same. Left out: ranks that
            can share memory are on one host.

    Attributes:
        everyone: All ranks of `comm`.
        inside: The ranks of this host.
        across: This rank's group, which has one rank of each host; None if it has none, because
            other hosts have fewer ranks.
        host: The number of this rank's host, in the order of their first ranks.
        hosts, groups: How many there are of each.
        number: This rank's, inside its host; that of its group as well.
    """

    def __init__(self, comm: MPI.Intracomm, host: int | None = None) -> None:
        own = MPI.Intracomm(comm)
        numbers: list[int | None] = own.allgather(host)
        run_on_all(own, lambda: _check(numbers))
        self.everyone = Communicator(own)
        sharing = own.allgather(self.everyone.arena_ranks)
        given = numbers if host is not None else [min(ranks) for ranks in sharing]
        hosts = [
            tuple(rank for rank, label in enumerate(given) if label == number)
            for number in dict.fromkeys(given)
        ]
        self.hosts, self.groups = len(hosts), min(map(len, hosts))
        self.host = next(number for number, ranks in enumerate(hosts) if own.rank in ranks)
        self.number = hosts[self.host].index(own.rank)
        with contextlib.ExitStack() as stack:

            def part(split: MPI.Comm) -> Communicator:
                """Ranks that wait in hierarchical leave their CPU to exchanges in flight."""
                communicator = Communicator(split, transport="hierarchical")
                split.Free()
                return stack.enter_context(communicator)

            stack.enter_context(self.everyone)
            self.inside = part(own.Split(self.host, own.rank))
            group = own.Split(self.number if self.number < self.groups else MPI.UNDEFINED, own.rank)
            self.across = None if group == MPI.COMM_NULL else part(group)
            self._kept = stack.pop_all()

    def mean(self, value: float) -> float:
        """The mean of a number over all ranks; the same bits on each."""
        total = np.array([value])
        self.everyone.Allreduce(MPI.IN_PLACE, total)
        return float(total[0]) / self.everyone.size

    def free(self) -> None:
        """Free all of them; collective."""
        self._kept.close()

    def abandon(self, error: BaseException) -> None:
        """Leave without the other ranks: an error ended this one's part."""
        self._kept.__exit__(type(error), error, error.__traceback__)


def _check(numbers: list[Any]) -> None:
    given = [number for number in numbers if number is not None]
    if given and (
        len(given) < len(numbers) or not all(hasattr(number, "__index__") for number in given)
    ):
        raise ValueError(f"host={numbers} on the ranks: give a whole number on all ranks, or none")
