"""Notices ranks that die, leave or give up, for programs that wait outside the library."""

from __future__ import annotations

from mpi4py import MPI

from hbmcomm.hierarchical import watch
from hbmcomm.hierarchical.grouping import Layout, find_hosts
from hbmcomm.transports.native import Core, lib
from hbmcomm.transports.transport import Transport


class Watch:
    """A watch of all ranks of a communicator; collective to make.

    A rank that waits for a message of MPI waits for ever where its sender has died. One that tests
    instead, and calls `check` between its tests, gets PeerError. Collectives and flags of
    transports direct and hierarchical need no watch.

    Ranks that share an arena watch each other there. Others connect by TCP, each rank to one of its
    host and these to each other; where they cannot, there is a warning, and the watch sees nothing.

    Args:
        comm: Any intracommunicator; it must not be freed before `close`.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        near = comm._neighbours() if isinstance(comm, Transport) else None
        self._core: Core | None = near.core if near else None
        self._shared = len(near.ranks) if near else 0  # ranks, which the core numbers from 0 on
        plain = MPI.Intracomm(comm)
        is_near = self._shared == comm.size
        self._links: watch.Watch | None = None
        if not plain.allreduce(is_near, MPI.LAND):
            hosts = find_hosts(plain.allgather, comm.rank)
            layout = Layout(hosts, comm.rank, 1, dict.fromkeys(range(comm.size), 0))
            self._links = watch.create(plain.allgather, layout)

    def check(self, waited: float = 0.0) -> None:
        """Raise the error where a rank is gone; waits for none.

        Args:
            waited: Seconds of the wait so far. What a rank of another host sent before it left may
                still be on its way: it counts as gone after 5 s of waiting.

        Raises:
            PeerError: A rank died, left or gave up.
        """
        if self._links is not None:
            self._links.look(waited)
        if self._core is not None:
            for number in range(self._shared):
                if status := lib.hbm_check_rank(self._core.handle, number):
                    raise self._core.error(status)

    def check_target(self, rank: int) -> None:
        """Raise PeerError where a rank of another host died or left: nothing can reach it."""
        if self._links is not None:
            self._links.refuse_gone(rank)

    def fail(self, why: str) -> None:
        """Leave because of an error: ranks of other hosts get a PeerError that says why."""
        if self._links is not None:
            self._links.fail(why)

    def close(self) -> None:
        """Leave; other ranks then take this one for gone."""
        if self._links is not None:
            self._links.close()
