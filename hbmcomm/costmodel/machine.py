"""Machines as values: cores, NUMA nodes, how fast memories are, and the network between machines.

Knows no algorithm. The machines and networks with a name are in known.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from hbmcomm import HbmcommError


class CostModelError(HbmcommError, ValueError):
    """What a cost model is asked for, or is given, has no answer."""


@dataclass(frozen=True)
class Memory:
    """How fast threads read and write one kind of memory together.

    Attributes:
        threads: numbers of threads, increasing.
        speeds: bytes read and written per second by so many threads, spread over the machine.
    """

    threads: tuple[int, ...]
    speeds: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(one < two for one, two in zip(self.threads, self.threads[1:], strict=False))
        if not self.threads or len(self.threads) != len(self.speeds) or not rising:
            raise CostModelError(
                f"threads {self.threads} and speeds {self.speeds} are not a curve; give as many of "
                "each, and threads in increasing order"
            )
        if min(self.threads) < 1 or min(self.speeds) <= 0:
            raise CostModelError(f"speeds {self.speeds} must be above 0, in bytes per second")

    def speed(self, threads: float) -> float:
        """Bytes per second of so many threads: between two points of the curve in proportion on
        logarithmic axes, below the first in proportion to threads, beyond the last as there."""
        if threads < self.threads[0]:
            return self.speeds[0] * threads / self.threads[0]
        logs = np.interp(math.log(threads), np.log(self.threads), np.log(self.speeds))
        return float(np.exp(logs))


@dataclass(frozen=True)
class Network:
    """What joins machines.

    Attributes:
        alpha: seconds that a short message takes.
        bandwidth: bytes per second of a machine's link in each direction.
    """

    alpha: float
    bandwidth: float


@dataclass(frozen=True)
class Machine:
    """One machine.

    Attributes:
        nodes: NUMA nodes with CPUs; each has an equal part of the cores and of every memory.
        cache_bytes: of all caches that ranks share.
        cache: how fast its threads read and write data in caches.
        memories: by kind, as hbmcomm.KINDS spells them: "regular", "hbw".
        latency: seconds from one core's store to another core's load of the line.
    """

    name: str
    cores: int
    nodes: int
    cache_bytes: float
    cache: Memory
    memories: Mapping[str, Memory]
    latency: float

    def speed(self, kind: str, ranks: int, packed: bool = False) -> float:
        """Bytes per second that ranks get of a memory together.

        Args:
            packed: ranks fill one NUMA node after the other, each with the memory of its node;
                else they are spread over all nodes.

        Raises:
            CostModelError: the machine has no such memory.
        """
        if kind not in self.memories:
            raise CostModelError(
                f"{self.name} has no memory {kind!r}; name one of {', '.join(self.memories)}"
            )
        cores_per_node = self.cores / self.nodes
        used = min(self.nodes, math.ceil(ranks / cores_per_node)) if packed else self.nodes
        return self.memories[kind].speed(ranks * self.nodes / used) * used / self.nodes
