"""What is measured as operations are, but is no collective: steps of training, whole systems.

A workload has contenders of its own, which are the transports of its campaigns. Knows their names
and what bytes mean, not how they run.
"""

from experiments.model.contender_names import GLOO, TORCH, TORCH_GROUPS
from experiments.model.systems import daso, fusion, modelled, parameter_server, regions
from experiments.model.systems.workload import Workload

DDP, FSDP2, DECODE = "ddp_step", "fsdp2_step", "decode_step"

WIDTH = 512  # of a layer that is trained
HIDDEN = 1024  # of a token's state


def _step(title: str, grain: int, held: int) -> Workload:
    return Workload(title, (TORCH, GLOO), grain=grain, held=held)


_TORCH_STEPS = {
    DDP: _step("DDP step", grain=4 * WIDTH * WIDTH, held=5),
    FSDP2: _step("FSDP2 step", grain=4 * WIDTH * WIDTH, held=5),
    DECODE: _step("Decode step", grain=4 * HIDDEN, held=0),
}
"""The bytes of a training step are those of all gradients, in whole layers. It holds parameters,
gradients, the buffers of DDP or FSDP2, and the second network of a check. The bytes of a decode
step are those of one all_reduce, of the states of whole tokens."""

WORKLOADS = {
    **_TORCH_STEPS,
    **regions.WORKLOADS,
    **parameter_server.WORKLOADS,
    **fusion.WORKLOADS,
    **daso.WORKLOADS,
    **modelled.WORKLOADS,
}
"""By name."""

CONTENDERS = tuple(dict.fromkeys(name for each in WORKLOADS.values() for name in each.contenders))
"""The contenders of all workloads."""

NEEDING_TORCH = {
    *TORCH_GROUPS,
    *(regions.RPC, regions.RPC_TUNED, regions.GLOO_SEND),
    parameter_server.GLOO_LOCAL,
    *(fusion.GLOO_BUCKETS, *fusion.HOROVODS, fusion.GRPC),
}
"""Contenders that need torch, or gRPC, which is installed with it."""

COMPUTING = tuple(_TORCH_STEPS)
"""The workloads that have a computation of their own. The same without communication takes turns
with each as NO_TRANSPORT, and bounds it."""


def nbytes(operation: str, size: int) -> int:
    """The bytes of an operation's cell where the campaign asks for `size`."""
    workload = WORKLOADS.get(operation)
    return workload.nbytes or size if workload else size


def carries(operation: str, transport: str) -> bool:
    """Whether a transport can do an operation; any can do what is no workload."""
    return operation not in WORKLOADS or transport in WORKLOADS[operation].contenders
