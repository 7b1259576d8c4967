"""What is measured as operations are, but is no collective: steps of training, whole systems.

A workload has contenders of its own, which are the transports of its campaigns. Knows their names
and what bytes mean, not how they run.
"""

import itertools
from dataclasses import dataclass

from experiments.model.contender_names import GLOO, TORCH
from hbmcomm.training.networks import gradients

DDP, FSDP2, DECODE = "ddp_step", "fsdp2_step", "decode_step"
DASO_STEP = "daso_step"
DASO, BLOCKING, MPI_BLOCKING, ALONE = "daso", "blocking", "mpi-blocking", "alone"
EXCHANGE = "exchange"

LAYERWISE, AFTERWARDS, MPI_LAYERWISE = "layerwise", "afterwards", "mpi-layerwise"
"""Gradients are exchanged during the backward pass by this library, after it, and by MPI."""

TREE_BCAST, TREE_REDUCE = "tree_bcast", "tree_reduce"
TREE, FLAT = "tree", "flat"
"""Between hosts: by a binomial tree of this library, or by a root that serves every rank."""

NETWORK_STEPS = {f"step_{name}": name for name in ("alexnet", "resnet50", "mobilenet_v1")}
"""By name of a step with emulated computation, its network."""

PUSH = "tensor_push"
PUSHED_NETWORKS = {
    "push_alexnet": "alexnet",
    "push_resnet50": "resnet50",
    "push_mobilenet": "mobilenet_v1",
}
"""The network that each of these workloads pushes, as hbmcomm.training.networks names it."""
REGION, RPC, RPC_TUNED = "region", "grpc", "grpc-tuned"
PACK_MPI, GLOO_SEND = "pack-mpi", "gloo-send"
RESNET, MOBILENET = "allreduce_resnet50", "allreduce_mobilenet"
RESNET_STEP, MOBILENET_STEP = "step_resnet50", "step_mobilenet"
POINTERS, BETWEEN_HOSTS = "pointer_lookup", "allreduce_between_hosts"
NETWORK_OF = {
    RESNET: "resnet50",
    MOBILENET: "mobilenet_v1",
    RESNET_STEP: "resnet50",
    MOBILENET_STEP: "mobilenet_v1",
}
"""The network of a workload, as hbmcomm.training.networks names it."""

FUSED, PACKED, MPI_FUSED = "fused", "fused-packed", "mpi-fused"
ONE_BY_ONE, ONE_BY_ONE_ARENA = "one-by-one", "one-by-one-arena"
MPI_ONE_BY_ONE, GLOO_BUCKETS = "mpi-one-by-one", "gloo-ddp-buckets"
OVERLAPPED, AFTERWARDS, COMPUTE = "overlapped", "after-backward", "compute-alone"
GRPC = "grpc-server"
CACHE, QUERY = "cache", "query"
ALGORITHMS = ("auto", "ring", "recursive-doubling", "rabenseifner", "tree")
"""Of transport hierarchical, by the values of HBMCOMM_BETWEEN_HOSTS."""
PS, TUNED_PS, GATHER_NUMPY, GLOO_LOCAL = "hbmcomm-ps", "tuned-ps", "gather-numpy", "gloo-local"
PS_UNFUSED, PS_PULL, PS_SHARED = "ps-unfused", "ps-pull", "ps-shared"
PS_CHUNKS = ("ps-4KiB", "ps-16KiB", "ps-128KiB", "ps-512KiB", "ps-2MiB", "ps-8MiB")
PS_CENTRAL, PS_COLOCATED = "ps-central", "ps-colocated"
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg16": 138_357_544,
    "resnet50": 25_557_032,
    "mobilenet_v1": 4_231_976,
}

WIDTH = 512  # of a layer that is trained
HIDDEN = 1024  # of a token's state
CLASSIFIER = (256, 512, 256, 10)  # widths of a small network, from inputs to classes


@dataclass(frozen=True)
class Workload:
    """One workload.

    Attributes:
        title: as figures and tables name it.
        contenders: what can carry it; the first is this library's, which the others are compared
            with.
        program: the module of experiments/programs/workloads that makes its contenders; "": they
            are process groups of torch.
        grain: the bytes of a cell are multiples of it.
        held: how many times the bytes of a cell each contender holds at most, besides its buffers.
        nbytes: the bytes of its only cell, such as those of a network's gradients; 0: it has the
            sizes of the campaign.
        computes: it computes as well. The same without communication takes turns with it as
            NO_TRANSPORT, and bounds it.
        uses_torch: a contender needs torch.
    """

    title: str
    contenders: tuple[str, ...]
    program: str = ""
    grain: int = 4
    held: int = 0
    nbytes: int = 0
    computes: bool = False
    uses_torch: bool = False

    @property
    def family(self) -> tuple[str, str]:
        """What the workloads of one campaign have in common."""
        return self.program, self.contenders[0]


def _served(title: str, network: str, contenders: tuple[str, ...]) -> Workload:
    """A step of a parameter server; contenders share gradients and weights, state is their own."""
    return Workload(
        title,
        contenders,
        program="parameter_server",
        held=2,
        nbytes=4 * PARAMETERS[network],
        uses_torch=GLOO_LOCAL in contenders,
    )


_SERVERS = (PS, TUNED_PS, GATHER_NUMPY, GLOO_LOCAL)

_PARTS = (PS, PS_UNFUSED, PS_PULL, PS_SHARED, *PS_CHUNKS)


def _step(title: str, grain: int, held: int) -> Workload:
    groups = (TORCH, GLOO)
    return Workload(title, groups, grain=grain, held=held, computes=True, uses_torch=True)


def _of_layers(*widths: int) -> int:
    """Bytes of the gradients of fully connected layers with biases."""
    return 4 * sum((low + 1) * high for low, high in itertools.pairwise(widths))


def _push(title: str, nbytes: int = 0) -> Workload:
    ways = (REGION, RPC, RPC_TUNED, PACK_MPI, GLOO_SEND)
    return Workload(title, ways, "regions.push", held=2, nbytes=nbytes, uses_torch=True)
def _gradients(title: str, nbytes: int) -> Workload:
    ways = (FUSED, PACKED, ONE_BY_ONE, ONE_BY_ONE_ARENA, MPI_ONE_BY_ONE, MPI_FUSED, GLOO_BUCKETS)
    program = "fusion.gradients"
    return Workload(title, ways, program, held=2, nbytes=nbytes, uses_torch=True)


def _overlap(title: str, nbytes: int) -> Workload:
    ways = (OVERLAPPED, AFTERWARDS, COMPUTE, MPI_ONE_BY_ONE, GRPC)
    return Workload(title, ways, "fusion.steps", held=4, nbytes=nbytes)

_OVER_LINKS = Workload(
    "Parameter server over links, MobileNet",
    (PS_CENTRAL, PS_COLOCATED),
    program="parameter_server_hosts",
    held=6,
    nbytes=4 * PARAMETERS["mobilenet_v1"],
)

def _emulated_step(network: str) -> Workload:
    nbytes = 4 * sum(elements for _, elements in gradients(network))
    contenders = (LAYERWISE, AFTERWARDS, MPI_LAYERWISE)
    return Workload(f"Step of {network}", contenders, "gradients", held=2, nbytes=nbytes)


WORKLOADS = {
    DDP: _step("DDP step", grain=4 * WIDTH * WIDTH, held=5),
    FSDP2: _step("FSDP2 step", grain=4 * WIDTH * WIDTH, held=5),
    DECODE: _step("Decode step", grain=4 * HIDDEN, held=0),
    DASO_STEP: Workload(
        "Eight batches of training on hosts",
        (DASO, BLOCKING, MPI_BLOCKING, ALONE),
        program="daso",
        held=12,
        nbytes=_of_layers(*CLASSIFIER),
    ),
    PUSH: _push("Tensor push"),
    "push_alexnet": _push("AlexNet gradients, pushed", nbytes=244_403_360),
    "push_resnet50": _push("ResNet-50 gradients, pushed", nbytes=102_228_128),
    "push_mobilenet": _push("MobileNet gradients, pushed", nbytes=16_927_904),
    RESNET: _gradients("ResNet-50 gradients", nbytes=102_228_128),
    MOBILENET: _gradients("MobileNet gradients", nbytes=16_927_904),
    RESNET_STEP: _overlap("ResNet-50 step", nbytes=102_228_128),
    MOBILENET_STEP: _overlap("MobileNet step", nbytes=16_927_904),
    POINTERS: Workload("Allreduce of a known buffer", (CACHE, QUERY), "fusion.pointers", held=2),
    BETWEEN_HOSTS: Workload("Allreduce between hosts", ALGORITHMS, "fusion.algorithms", held=1),
    "ps_alexnet": _served("Parameter server, AlexNet", "alexnet", _SERVERS),
    "ps_vgg16": _served("Parameter server, VGG-16", "vgg16", _SERVERS),
    "ps_resnet50": _served("Parameter server, ResNet-50", "resnet50", _SERVERS),
    "ps_hosts_mobilenet_v1": _OVER_LINKS,
    "ps_parts_alexnet": _served("Parameter server part by part, AlexNet", "alexnet", _PARTS),
    EXCHANGE: Workload("Exchange of gradients", (LAYERWISE, MPI_LAYERWISE), "gradients", held=2),
    TREE_BCAST: Workload("Broadcast between hosts", (TREE, FLAT), "trees", held=8),
    TREE_REDUCE: Workload("Reduce between hosts", (TREE, FLAT), "trees", held=8),
    **{name: _emulated_step(network) for name, network in NETWORK_STEPS.items()},
}
"""By name. The bytes of a training step are those of all gradients, in whole layers. It holds
parameters, gradients, the buffers of DDP or FSDP2, and the second network of a check. The bytes of
a decode step are those of one all_reduce, of the states of whole tokens."""

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
