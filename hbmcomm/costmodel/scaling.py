"""What-if: an operation on many machines, from a model of one node and a network between nodes.

The ranks of a node meet in its memory, as transport hierarchical has them do; the nodes exchange
messages by the algorithm that takes least time there. The two follow each other: no overlap.
"""

from __future__ import annotations

from collections.abc import Mapping

from hbmcomm.costmodel.counts import ALGORITHMS
from hbmcomm.costmodel.machine import CostModelError, Machine, Network
from hbmcomm.costmodel.model import Model

INSIDE: Mapping[str, tuple[str, ...]] = {
    "bcast": ("bcast",),
    "reduce": ("reduce",),
    "allreduce": ("reduce", "bcast"),
}
"""What the ranks of a node do in an operation of all nodes."""


def messages_seconds(
    operation: str, algorithm: str, ranks: int, nbytes: int, network: Network, gamma: float
) -> float:
    """The time of an algorithm in the alpha-beta-gamma model.

    Args:
        ranks: each has a link of its own.
        gamma: seconds to fold a byte.

    Raises:
        CostModelError: an unknown operation or algorithm.
    """
    count = ALGORITHMS.get(operation, {}).get(algorithm)
    if count is None:
        raise CostModelError(
            f"no algorithm {algorithm!r} of {operation!r} is known; algorithms of "
            + "; ".join(f"{name}: {', '.join(names)}" for name, names in ALGORITHMS.items())
        )
    if ranks < 2:
        return 0.0
    counts = count(ranks, nbytes)
    return counts.messages * network.alpha + counts.sent / network.bandwidth + counts.folded * gamma


def best_algorithm(
    operation: str, nodes: int, nbytes: int, network: Network, gamma: float
) -> tuple[float, str]:
    """The least time between nodes, and the algorithm that has it."""
    return min(
        (messages_seconds(operation, name, nodes, nbytes, network, gamma), name)
        for name in ALGORITHMS.get(operation, {"": None})
    )


def seconds_on(
    operation: str,
    models: Mapping[str, Model],
    machine: Machine,
    network: Network,
    *,
    nodes: int,
    ranks: int,
    nbytes: int,
    kind: str = "regular",
    packed: bool = False,
) -> float:
    """The time of an operation on so many nodes.

    Args:
        models: by operation, of transport direct on one node; those of INSIDE are needed. A reduce
            takes at most what an allreduce takes, which replaces it where its model is missing.
        machine: each node.
        ranks: of each node.
        packed: they fill one NUMA node after the other.

    Raises:
        CostModelError: the operation is not one of INSIDE, or a model is missing.
    """
    if operation not in INSIDE:
        raise CostModelError(
            f"{operation!r} has no model of many nodes; name one of {', '.join(INSIDE)}"
        )
    known = {"reduce": models.get("allreduce"), **models}
    inside = (operation,) if nodes == 1 else INSIDE[operation]
    available = [model for name in inside if (model := known.get(name))]
    if len(available) < len(inside):
        raise CostModelError(
            f"{operation} on many nodes needs models of {', '.join(inside)}; found those of "
            f"{', '.join(models) or 'none'}: fit the others"
        )
    gamma = available[0].absolute(machine).gamma
    return best_algorithm(operation, nodes, nbytes, network, gamma)[0] + sum(
        fitted.seconds(ranks, nbytes, machine, kind=kind, packed=packed) for fitted in available
    )
