"""What cost models are held against: steps that exchange gradients by layer, and trees of hosts."""

from experiments.model.systems.workload import Workload, gradient_bytes

EXCHANGE = "exchange"
LAYERWISE, AFTERWARDS, MPI_LAYERWISE = "layerwise", "afterwards", "mpi-layerwise"
"""Gradients are exchanged during the backward pass by this library, after it, and by MPI."""

TREE_BCAST, TREE_REDUCE = "tree_bcast", "tree_reduce"
TREE, FLAT = "tree", "flat"
"""Between hosts: by a binomial tree of this library, or by a root that serves every rank."""

NETWORK_STEPS = {f"step_{name}": name for name in ("alexnet", "resnet50", "mobilenet_v1")}
"""By name of a step with emulated computation, its network."""


def _emulated_step(network: str) -> Workload:
    contenders = (LAYERWISE, AFTERWARDS, MPI_LAYERWISE)
    nbytes = gradient_bytes(network)
    return Workload(f"Step of {network}", contenders, "modelled.gradients", held=2, nbytes=nbytes)


WORKLOADS = {
    EXCHANGE: Workload(
        "Exchange of gradients", (LAYERWISE, MPI_LAYERWISE), "modelled.gradients", held=2
    ),
    TREE_BCAST: Workload("Broadcast between hosts", (TREE, FLAT), "modelled.trees", held=8),
    TREE_REDUCE: Workload("Reduce between hosts", (TREE, FLAT), "modelled.trees", held=8),
    **{name: _emulated_step(network) for name, network in NETWORK_STEPS.items()},
}
