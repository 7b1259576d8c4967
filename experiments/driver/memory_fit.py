"""Whether a machine has memory for the buffers of launches that are alive together."""

from collections import Counter
from collections.abc import Sequence

import hbmcomm
from experiments.baselines.launches import holds
from experiments.machine import binding, facts
from experiments.machine.binding import cpus_by_node
from experiments.model.launch import Launch
from experiments.schedule import footprint

PROCESS = 2**27  # bytes that a rank takes beside its buffers
Own = Sequence[tuple[Launch, Counter[int]]]
"""Launches, with the bytes of each of their ranks on a machine."""
NEAREST = ("hbw", "hbw_preferred")  # kinds on the HBM nodes nearest to a rank; others are on all


def fits(launches: Sequence[Launch], nodes: int = 1) -> bool:
    """Whether all of them fit at once: one kind at a time, on the machine and on each HBM node.

    Args:
        nodes: machines that share the ranks equally; this one is the first and as large as others.
    """
    cache = facts.last_level_cache()
    own = [(launch, _own(launch, nodes, cache)) for launch in launches]
    needed = sum(by_rank.total() + len(by_rank) * PROCESS for _, by_rank in own)
    if needed > footprint.MEMORY_SHARE * facts.available_memory():
        return False
    memory = hbmcomm.topology().nodes
    fast = {node.id: footprint.NODE_SHARE * node.available_bytes for node in memory if node.is_hbm}
    kinds = {(cell.kind, cell.locality) for launch in launches for cell in launch.cells}
    for kind, locality in kinds:
        if footprint.in_hbm(kind) and fast:
            taken = _taken(own, kind, locality)
            if any(taken[node] > room for node, room in fast.items()):
                return False
    return True


def _own(launch: Launch, nodes: int, cache: int) -> Counter[int]:
    """Bytes by rank, of those on the first machine."""
    ranks = range(launch.ranks // nodes)
    return Counter({rank: footprint.own_bytes(launch, rank, cache) for rank in ranks})


def _taken(own: Own, kind: str, locality: str) -> Counter[int]:
    """Bytes of a kind by node; of nodes that share a rank's, an even part."""
    topology, cpus = hbmcomm.topology(), cpus_by_node()
    taken: Counter[int] = Counter()
    for launch, by_rank in own:
        if not holds(launch.program, kind, locality):
            continue
        for rank, nbytes in by_rank.items():
            home = topology.node_of_cpu(binding.cpu_of(rank, launch.binding, cpus))
            nodes = topology.hbm.nodes
            if locality == "remote":
                nodes = topology.farthest(home, among=nodes)[-1:] or nodes
            elif kind in NEAREST:
                nodes = topology.nearest(home, among=nodes)
            for node in nodes:
                taken[node] += nbytes // len(nodes)
    return taken
