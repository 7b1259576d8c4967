"""Tensors pushed from one rank to another: remote regions, beside gRPC and messages."""

from experiments.model.systems.workload import Workload

PUSH = "tensor_push"
REGION, RPC, RPC_TUNED = "region", "grpc", "grpc-tuned"
PACK_MPI, GLOO_SEND = "pack-mpi", "gloo-send"


def _push(title: str, network: str = "") -> Workload:
    ways = (REGION, RPC, RPC_TUNED, PACK_MPI, GLOO_SEND)
    return Workload(title, ways, "regions.push", held=2, network=network)


WORKLOADS = {
    PUSH: _push("Tensor push"),
    "push_alexnet": _push("AlexNet gradients, pushed", "alexnet"),
    "push_resnet50": _push("ResNet-50 gradients, pushed", "resnet50"),
    "push_mobilenet": _push("MobileNet gradients, pushed", "mobilenet_v1"),
}
