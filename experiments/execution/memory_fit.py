"""Whether this machine has memory for the buffers of launches that are alive together."""

from collections import Counter
from collections.abc import Sequence

import hbmcomm
from experiments.model.launch import Launch
from experiments.programs.baselines.launches import holds
from experiments.programs.machine import binding, facts
from experiments.programs.machine.binding import cpus_by_node
from experiments.schedule import footprint

PROCESS = 2**27  # bytes that a rank takes beside its buffers
NEAREST = ("hbw", "hbw_preferred")  # kinds on the HBM nodes nearest to a rank; others are on all


def fits(launches: Sequence[Launch]) -> bool:
    """Whether all of them fit at once: one kind at a time, on the machine and on each HBM node."""
    cache = facts.last_level_cache()
    needed = sum(_own(launch, cache).total() + launch.ranks * PROCESS for launch in launches)
    if needed > footprint.MEMORY_SHARE * facts.available_memory():
        return False
    nodes = hbmcomm.topology().nodes
    fast = {node.id: footprint.NODE_SHARE * node.available_bytes for node in nodes if node.is_hbm}
    kinds = {(cell.kind, cell.locality) for launch in launches for cell in launch.cells}
    for kind, locality in kinds:
        if footprint.in_hbm(kind) and fast:
            taken = _taken(launches, kind, locality, cache)
            if any(taken[node] > room for node, room in fast.items()):
                return False
    return True


def _own(launch: Launch, cache: int) -> Counter[int]:
    """Bytes by rank."""
    return Counter({r: footprint.own_bytes(launch, r, cache) for r in range(launch.ranks)})


def _taken(launches: Sequence[Launch], kind: str, locality: str, cache: int) -> Counter[int]:
    """Bytes of a kind by node; of nodes that share a rank's, an even part."""
    topology, cpus = hbmcomm.topology(), cpus_by_node()
    taken: Counter[int] = Counter()
    for launch in (each for each in launches if holds(each.program, kind, locality)):
        for rank, nbytes in _own(launch, cache).items():
            home = topology.node_of_cpu(binding.cpu_of(rank, launch.binding, cpus))
            nodes = topology.hbm.nodes
            if locality == "remote":
                nodes = topology.farthest(home, among=nodes)[-1:] or nodes
            elif kind in NEAREST:
                nodes = topology.nearest(home, among=nodes)
            for node in nodes:
                taken[node] += nbytes // len(nodes)
    return taken
