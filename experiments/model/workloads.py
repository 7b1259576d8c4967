"""What is measured as operations are, but is not a collective: steps of training, whole systems.

A workload has contenders of its own, which are the transports of its campaigns. Knows their names
and what bytes mean, not how they run.
"""

import itertools
from dataclasses import dataclass
from functools import cached_property

from experiments.model.contender_names import GLOO, TORCH, TORCH_GROUPS
from hbmcomm.training.networks import gradients


@dataclass(frozen=True)
class Workload:
    """One workload.

    Attributes:
        title: as figures and tables name it.
        contenders: what can carry it; the first is this library's, which the others are compared
            with.
        program: the module of experiments/implementations that makes its contenders; "": they
            are process groups of torch.
        grain: the bytes of a cell are multiples of it.
        held: how many times the bytes of a cell each contender holds at most, besides its buffers.
        network: of hbmcomm.training.networks; its only cell has the bytes of all gradients.
        elements: of its only cell, where that is not a network's.
    """

    title: str
    contenders: tuple[str, ...]
    program: str = ""
    grain: int = 4
    held: int = 0
    network: str = ""
    elements: int = 0

    @property
    def family(self) -> tuple[str, str]:
        """What the workloads of one campaign have in common."""
        return self.program, self.contenders[0]

    @cached_property
    def lengths(self) -> list[int]:
        """Elements of each gradient of its network, first layer first; empty without a network."""
        return [elements for _, elements in gradients(self.network)] if self.network else []

    @cached_property
    def nbytes(self) -> int:
        """Bytes of its only cell; 0: it has the sizes of the campaign."""
        return 4 * (self.elements or sum(self.lengths))


PS, TUNED_PS, GATHER_NUMPY, GLOO_LOCAL = "hbmcomm-ps", "tuned-ps", "gather-numpy", "gloo-local"
PS_UNFUSED, PS_PULL, PS_SHARED = "ps-unfused", "ps-pull", "ps-shared"
PS_CHUNKS = ("ps-4KiB", "ps-16KiB", "ps-128KiB", "ps-512KiB", "ps-2MiB", "ps-8MiB")
PS_CENTRAL, PS_COLOCATED = "ps-central", "ps-colocated"

_SERVERS = (PS, PS_SHARED, TUNED_PS, GATHER_NUMPY, GLOO_LOCAL)
_PARTS = (PS, PS_UNFUSED, PS_PULL, PS_SHARED, *PS_CHUNKS)


def _served(title: str, network: str, contenders: tuple[str, ...]) -> Workload:
    """A step of a parameter server.

    Contenders share gradients and weights. A state is their own, and ranks share it as a rule, so
    each holds less than the cell, and those of more than two ranks no more than one cell each.
    """
    return Workload(title, contenders, program="parameter_server", held=1, network=network)


PARAMETER_SERVERS = {
    "ps_alexnet": _served("Parameter server, AlexNet", "alexnet", _SERVERS),
    "ps_vgg16": _served("Parameter server, VGG-16", "vgg16", _SERVERS),
    "ps_resnet50": _served("Parameter server, ResNet-50", "resnet50", _SERVERS),
    "ps_parts_resnet50": _served("Parameter server part by part, ResNet-50", "resnet50", _PARTS),
    "ps_hosts_mobilenet_v1": Workload(
        "Parameter server over links, MobileNet",
        (PS_CENTRAL, PS_COLOCATED),
        program="parameter_server_hosts",
        held=6,
        network="mobilenet_v1",
    ),
}


RESNET, MOBILENET = "allreduce_resnet50", "allreduce_mobilenet"
RESNET_STEP, MOBILENET_STEP = "overlap_resnet50", "overlap_mobilenet"
RESNET_DEVICE, MOBILENET_DEVICE = ON_DEVICE = (
    "overlap_resnet50_device",
    "overlap_mobilenet_device",
)
"""Steps that a device computes; the CPU of each rank computes the others."""
POINTERS, BETWEEN_HOSTS = "pointer_lookup", "allreduce_between_hosts"

FUSED, PACKED, MPI_FUSED = "fused", "fused-packed", "mpi-fused"
ONE_BY_ONE, ONE_BY_ONE_ARENA = "one-by-one", "one-by-one-arena"
MPI_ONE_BY_ONE, GLOO_BUCKETS = "mpi-one-by-one", "gloo-ddp-buckets"
HOROVOD_MPI, HOROVOD_GLOO = HOROVODS = "horovod", "horovod-gloo"
"""Horovod, by what its ranks agree and reduce with."""
"""The folder of it in the environment of an MPI."""
OVERLAPPED, AFTER_BACKWARD, COMPUTE = "overlapped", "after-backward", "compute-alone"
GRPC = "grpc-server"
CACHE, QUERY = "cache", "query"
ALGORITHMS = ("auto", "ring", "recursive-doubling", "rabenseifner", "tree")
"""Of transport hierarchical, by the values of HBMCOMM_BETWEEN_HOSTS."""


def _gradients(title: str, network: str) -> Workload:
    ways = (FUSED, PACKED, ONE_BY_ONE, ONE_BY_ONE_ARENA, MPI_ONE_BY_ONE, MPI_FUSED, GLOO_BUCKETS)
    return Workload(title, (*ways, *HOROVODS), "fused_gradients", held=2, network=network)


def _overlap(title: str, network: str) -> Workload:
    ways = (OVERLAPPED, AFTER_BACKWARD, COMPUTE, MPI_ONE_BY_ONE, GRPC)
    return Workload(title, ways, "overlapped_steps", held=4, network=network)


FUSION = {
    RESNET: _gradients("ResNet-50 gradients", "resnet50"),
    MOBILENET: _gradients("MobileNet gradients", "mobilenet_v1"),
    RESNET_STEP: _overlap("ResNet-50 step, overlapped", "resnet50"),
    MOBILENET_STEP: _overlap("MobileNet step, overlapped", "mobilenet_v1"),
    RESNET_DEVICE: _overlap("ResNet-50 step on a device, overlapped", "resnet50"),
    MOBILENET_DEVICE: _overlap("MobileNet step on a device, overlapped", "mobilenet_v1"),
    POINTERS: Workload("Allreduce of a known buffer", (CACHE, QUERY), "pointer_lookup", held=2),
    BETWEEN_HOSTS: Workload("Allreduce between hosts", ALGORITHMS, "between_hosts", held=1),
}


PUSH = "tensor_push"
REGION, RPC, RPC_TUNED = "region", "grpc", "grpc-tuned"
PACK_MPI, GLOO_SEND = "pack-mpi", "gloo-send"


def _push(title: str, network: str = "") -> Workload:
    ways = (REGION, RPC, RPC_TUNED, PACK_MPI, GLOO_SEND)
    return Workload(title, ways, "push", held=2, network=network)


PUSHES = {
    PUSH: _push("Tensor push"),
    "push_alexnet": _push("AlexNet gradients, pushed", "alexnet"),
    "push_resnet50": _push("ResNet-50 gradients, pushed", "resnet50"),
    "push_mobilenet": _push("MobileNet gradients, pushed", "mobilenet_v1"),
}


DASO_STEP = "daso_step"
DASO, BLOCKING, MPI_BLOCKING, ALONE = "daso", "blocking", "mpi-blocking", "alone"
CLASSIFIER = (256, 512, 256, 10)  # widths of a small network with biases, inputs to classes

DASO_STEPS = {
    DASO_STEP: Workload(
        "Eight batches of training on hosts",
        (DASO, BLOCKING, MPI_BLOCKING, ALONE),
        program="daso",
        held=12,
        elements=sum((low + 1) * high for low, high in itertools.pairwise(CLASSIFIER)),
    )
}


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
    return Workload(title, contenders, "modelled_gradients", held=2, network=network)


MODELLED = {
    EXCHANGE: Workload(
        "Exchange of gradients", (LAYERWISE, MPI_LAYERWISE), "modelled_gradients", held=2
    ),
    TREE_BCAST: Workload("Broadcast between hosts", (TREE, FLAT), "modelled_trees", held=8),
    TREE_REDUCE: Workload("Reduce between hosts", (TREE, FLAT), "modelled_trees", held=8),
    **{f"step_{name}": _emulated_step(name) for name in ("alexnet", "resnet50", "mobilenet_v1")},
}


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
    **PUSHES,
    **PARAMETER_SERVERS,
    **FUSION,
    **DASO_STEPS,
    **MODELLED,
}
"""By name."""

CONTENDERS = tuple(
    dict.fromkeys(name for workload in WORKLOADS.values() for name in workload.contenders)
)
"""The contenders of all workloads."""

NEEDING_TORCH = {
    *TORCH_GROUPS,
    *(RPC, RPC_TUNED, GLOO_SEND),
    GLOO_LOCAL,
    *(GLOO_BUCKETS, *HOROVODS, GRPC),
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
