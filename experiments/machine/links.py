"""Bytes that the links of hosts carry, read on each host of a launch.

A host here is a network: a machine, an emulated host, or a container with a network of its own. Its
link is all of its interfaces but the loopback. No counter separates jobs, so other
launches must sleep meanwhile.
"""

import socket
from functools import reduce
from pathlib import Path
from typing import Any

from mpi4py import MPI

from experiments.machine.facts import NETWORK_COUNTERS, Traffic, kernel, traffic_by_device

NETWORK = Path("/proc/self/ns/net")
LOOPBACK = "lo"
NOTHING = Traffic()


def traffic(counters: Path = NETWORK_COUNTERS) -> Traffic:
    """What the link of this host has carried since it is up."""
    every = traffic_by_device(counters).items()
    return reduce(Traffic.plus, (carried for name, carried in every if name != LOOPBACK), NOTHING)


class Links:
    """The links of a launch's hosts; every method but count() is a collective.

    Attributes:
        hosts: the ranks of each, in the order of their first ranks.
    """

    def __init__(self, comm: MPI.Intracomm) -> None:
        self._comm = comm
        own = socket.gethostname(), kernel(), str(NETWORK.readlink())
        self._networks: list[tuple[str, str, str]] = comm.allgather(own)
        every = dict.fromkeys(self._networks)
        self.hosts = [
            [rank for rank, network in enumerate(self._networks) if network == one] for one in every
        ]
        self._counts = len(self.hosts) > 1 and comm.rank in {ranks[0] for ranks in self.hosts}
        self._began = self.count()

    def count(self) -> Traffic:
        """What the link of this host has carried, on its first rank; of one host alone nothing."""
        return traffic() if self._counts else NOTHING

    def gathered(self, own: Traffic) -> dict[str, list[int]]:
        """{"sent": bytes by host, "received": bytes by host} on rank 0; none of one host alone."""
        every = self._comm.gather(own)
        if every is None or len(self.hosts) == 1:
            return {}
        first = [every[ranks[0]] for ranks in self.hosts]
        return {
            "sent": [carried.sent for carried in first],
            "received": [carried.received for carried in first],
        }

    def described(self) -> list[dict[str, Any]]:
        """What a result holds of each host, on rank 0; empty where there is one alone."""
        before, after = self.gathered(self._began), self.gathered(self.count())
        if not before:
            return []
        return [
            {
                "name": self._networks[ranks[0]][0],
                "ranks": ranks,
                "before": {way: before[way][number] for way in before},
                "after": {way: after[way][number] for way in after},
            }
            for number, ranks in enumerate(self.hosts)
        ]
