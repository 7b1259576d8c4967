"""How objects of several ranks end: closed by all of them together, or with a rank lost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

from mpi4py import MPI

from hbmcomm.hierarchical import watch
from hbmcomm.hierarchical.grouping import Layout, find_hosts


class ClosedByAll(ABC):
    """Leaving its `with` block closes it, unless by an error: other ranks may have none."""

    @abstractmethod
    def close(self) -> None:
        """Free it; collective."""

    @abstractmethod
    def _abandon(self, error: BaseException) -> None:
        """Go without waiting for other ranks; those that wait for this one get an error."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            self.close()
        else:
            self._abandon(error)


def watch_over(comm: MPI.Intracomm) -> watch.Watch | None:
    """A watch of all ranks; collective. None where they cannot be connected by TCP."""
    hosts = find_hosts(comm.allgather, comm.rank)
    layout = Layout(hosts, comm.rank, 1, dict.fromkeys(range(comm.size), 0))
    return watch.create(comm.allgather, layout)
