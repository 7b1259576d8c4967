"""What cost models are held against: steps that exchange gradients by layer, and trees of hosts."""

from experiments.model.systems.workload import Workload

EXCHANGE = "exchange"
LAYERWISE, AFTERWARDS, MPI_LAYERWISE = "layerwise", "afterwards", "mpi-layerwise"
"""Gradients are exchanged during the backward pass by this library, after it, and by MPI."""

TREE_BCAST, TREE_REDUCE = "tree_bcast", "tree_reduce"
TREE, FLAT = "tree", "flat"
"""Between hosts: by a binomial tree of this library, or by a root that serves every rank."""


def _emulated_step(network: str) -> Workload:
    """A step with emulated computation."""
    contenders = (LAYERWISE, AFTERWARDS, MPI_LAYERWISE)
    title = f"Step of {network}"
    return Workload(title, contenders, "modelled.gradients", held=2, network=network)


WORKLOADS = {
    EXCHANGE: Workload(
        "Exchange of gradients", (LAYERWISE, MPI_LAYERWISE), "modelled.gradients", held=2
    ),
    TREE_BCAST: Workload("Broadcast between hosts", (TREE, FLAT), "modelled.trees", held=8),
    TREE_REDUCE: Workload("Reduce between hosts", (TREE, FLAT), "modelled.trees", held=8),
    **{f"step_{name}": _emulated_step(name) for name in ("alexnet", "resnet50", "mobilenet_v1")},
}
