"""Tensors pushed from one rank to another: remote regions, beside gRPC and messages."""

from experiments.model.systems.workload import Workload, gradient_bytes

PUSH = "tensor_push"
PUSHED_NETWORKS = {
    "push_alexnet": "alexnet",
    "push_resnet50": "resnet50",
    "push_mobilenet": "mobilenet_v1",
}
"""The network that each of these workloads pushes, as hbmcomm.training.networks names it."""
REGION, RPC, RPC_TUNED = "region", "grpc", "grpc-tuned"
PACK_MPI, GLOO_SEND = "pack-mpi", "gloo-send"


def _push(title: str, nbytes: int = 0) -> Workload:
    ways = (REGION, RPC, RPC_TUNED, PACK_MPI, GLOO_SEND)
    return Workload(title, ways, "regions.push", held=2, nbytes=nbytes)


_TITLES = {"alexnet": "AlexNet", "resnet50": "ResNet-50", "mobilenet_v1": "MobileNet"}

WORKLOADS = {PUSH: _push("Tensor push")} | {
    name: _push(f"{_TITLES[network]} gradients, pushed", gradient_bytes(network))
    for name, network in PUSHED_NETWORKS.items()
}
