"""The memory of a machine as plain frozen values, without reading files or deciding anything.

Units are bytes, bytes per second and seconds; node numbers are the kernel's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

UNREACHABLE = 255
"""ACPI's distance of unreachable memory; here also of memory without a distance."""


@dataclass(frozen=True)
class Node:
    """A NUMA node; bandwidths (bytes/s) and latencies (s) from HMAT, None where it gives none."""

    id: int
    cpus: tuple[int, ...]
    total_bytes: int
    free_bytes: int
    available_bytes: int
    """Free bytes plus the page cache that the kernel reclaims on demand."""
    distances: Mapping[int, int]
    initiators: tuple[int, ...] = ()
    """Nodes with CPUs that access this memory best, from HMAT; empty where it gives none."""
    read_bandwidth: float | None = None
    write_bandwidth: float | None = None
    read_latency: float | None = None
    write_latency: float | None = None
    is_hbm: bool = False
    interleave_weight: int | None = None
    """Pages that it gets in turn with `weighted_interleave`; None before Linux 6.9."""


@dataclass(frozen=True)
class Tier:
    """A memory tier of the kernel: a lower number is faster memory, 4 is ordinary DRAM."""

    number: int
    nodes: tuple[int, ...]


@dataclass(frozen=True)
class DaxDevice:
    """Memory that firmware reserved; `online`: whether it is a NUMA node now."""

    name: str
    target_node: int
    size_bytes: int
    online: bool


@dataclass(frozen=True)
class Cache:
    """A last-level cache of some CPUs, or (with `node`) a memory-side cache before that node."""

    level: int
    size_bytes: int
    cpus: tuple[int, ...] = ()
    node: int | None = None


@dataclass(frozen=True)
class HbmFinding:
    """Which nodes are high-bandwidth memory, the rule that decided, and all the evidence."""

    nodes: tuple[int, ...]
    rule: str
    evidence: tuple[str, ...]
    emulated: bool
    """True where only configuration, and no other evidence, calls nodes high-bandwidth memory."""


@dataclass(frozen=True)
class Topology:
    """The memory of a machine at the time of reading."""

    nodes: tuple[Node, ...]
    dax: tuple[DaxDevice, ...]
    tiers: tuple[Tier, ...]
    caches: tuple[Cache, ...]
    processor: str
    hbm: HbmFinding

    @property
    def memory_nodes(self) -> tuple[int, ...]:
        """The nodes with memory; a GPU or an empty socket can be a node without."""
        return tuple(node.id for node in self.nodes if node.total_bytes)

    def node(self, number: int) -> Node:
        """The node of that number; ValueError where there is none."""
        for node in self.nodes:
            if node.id == number:
                return node
        raise ValueError(f"no NUMA node {number}; there are {[node.id for node in self.nodes]}")

    def node_of_cpu(self, cpu: int) -> int:
        """The number of the node that `cpu` belongs to; ValueError where there is no such CPU."""
        for node in self.nodes:
            if cpu in node.cpus:
                return node.id
        raise ValueError(f"no CPU {cpu} on any of the {len(self.nodes)} NUMA nodes")

    def nearest(self, cpu_node: int, among: tuple[int, ...]) -> tuple[int, ...]:
        """The nodes of `among` nearest to `cpu_node` by firmware's distances (all of a tie)."""
        distances = self._distances(cpu_node, among)
        return tuple(number for number in among if distances[number] == min(distances.values()))

    def farthest(self, cpu_node: int, among: tuple[int, ...]) -> tuple[int, ...]:
        """The nodes of `among` farthest from `cpu_node` (all of a tie); none if all are equal."""
        distances = self._distances(cpu_node, among)
        if len(set(distances.values())) < 2:
            return ()
        return tuple(number for number in among if distances[number] == max(distances.values()))

    def _distances(self, cpu_node: int, among: tuple[int, ...]) -> dict[int, int]:
        known = self.node(cpu_node).distances
        return {number: known.get(number, UNREACHABLE) for number in among}

    def local_nodes(self, cpu_node: int) -> tuple[int, ...]:
        """The memory that belongs to `cpu_node`: its own, and nodes without CPUs next to it.

        HMAT decides; where it gives nothing, a node without CPUs belongs to the nearest with CPUs.
        """
        with_cpus = tuple(node.id for node in self.nodes if node.cpus)
        return tuple(
            node.id
            for node in self.nodes
            if node.total_bytes
            and cpu_node
            in (
                (node.id,)
                if node.cpus
                else node.initiators or self.nearest(node.id, among=with_cpus)
            )
        )
