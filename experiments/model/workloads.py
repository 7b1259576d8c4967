"""What is measured as operations are, but is no collective: steps of training, whole systems.

A workload has contenders of its own, which are the transports of its campaigns. Knows their names
and what bytes mean, not how they run.
"""

from experiments.model.systems import (
    daso,
    fusion,
    modelled,
    parameter_server,
    regions,
    torch_steps,
)

WORKLOADS = {
    **torch_steps.WORKLOADS,
    **regions.WORKLOADS,
    **parameter_server.WORKLOADS,
    **fusion.WORKLOADS,
    **daso.WORKLOADS,
    **modelled.WORKLOADS,
}
"""By name."""

CONTENDERS = tuple(dict.fromkeys(name for each in WORKLOADS.values() for name in each.contenders))
"""The contenders of all workloads."""

COMPUTING = tuple(name for name, each in WORKLOADS.items() if each.computes)
"""The workloads that have a computation of their own."""


def nbytes(operation: str, size: int) -> int:
    """The bytes of an operation's cell where the campaign asks for `size`."""
    workload = WORKLOADS.get(operation)
    return workload.nbytes or size if workload else size


def carries(operation: str, transport: str) -> bool:
    """Whether a transport can do an operation; any can do what is no workload."""
    return operation not in WORKLOADS or transport in WORKLOADS[operation].contenders
