"""Detects lost ranks of a communicator where MPI itself would wait for them for ever."""

from __future__ import annotations

from mpi4py import MPI

from hbmcomm.collectives.hierarchical.hosts import watch
from hbmcomm.collectives.hierarchical.hosts.grouping import find_hosts
from hbmcomm.collectives.hierarchical.hosts.layout import Layout


def watch_over(comm: MPI.Intracomm) -> watch.Watch | None:
    """A watch of all ranks; collective. None where they cannot be connected by TCP."""
    hosts = find_hosts(comm.allgather, comm.rank)
    layout = Layout(hosts, comm.rank, 1, dict.fromkeys(range(comm.size), 0))
    return watch.create(comm.allgather, layout)
