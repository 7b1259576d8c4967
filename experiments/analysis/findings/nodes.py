"""The NUMA nodes that launches recorded, and which memory belongs to which CPUs. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Node:
    """A NUMA node as a result keeps it; experiments.programs.machine.nodes says what is what."""

    id: int
    cpus: tuple[int, ...]
    total_bytes: int
    distances: tuple[tuple[int, int], ...]
    initiators: tuple[int, ...]
    is_hbm: bool


def nodes_of(launch: Mapping[str, Any]) -> tuple[Node, ...]:
    """The nodes with CPUs or memory that a launch recorded."""
    return tuple(
        Node(
            node["id"],
            tuple(node["cpus"]),
            node["total_bytes"],
            tuple(sorted((int(other), far) for other, far in node["distances"].items())),
            tuple(node.get("initiators", ())),
            node["is_hbm"],
        )
        for node in launch["environment"]["topology"]["nodes"]
        if node["cpus"] or node["total_bytes"]
    )


def node_of(nodes: Iterable[Node], cpu: int) -> int:
    """The number of the node that has a CPU; -1 where none has it."""
    return next((node.id for node in nodes if cpu in node.cpus), -1)


def owners(node: Node, with_cpus: Sequence[Node]) -> list[int]:
    """The nodes with CPUs that one without serves best: by HMAT, else the nearest, all of a tie."""
    numbers = [each.id for each in with_cpus]
    by_hmat = [number for number in numbers if number in node.initiators]
    far = dict(node.distances)
    least = min(far.get(number, 255) for number in numbers)
    return by_hmat or [number for number in numbers if far.get(number, 255) == least]


def local_nodes(nodes: Sequence[Node], cpu_node: int) -> tuple[int, ...]:
    """The memory that belongs to a node with CPUs, as hbmcomm.Topology has it, of a result."""
    with_cpus = [node for node in nodes if node.cpus]
    return tuple(
        node.id
        for node in nodes
        if node.total_bytes
        and cpu_node in ([node.id] if node.cpus else node.initiators or owners(node, with_cpus))
    )
