"""Gradients reduced in few calls, beside one call for each tensor; what these designs rest on."""

from experiments.model.systems.workload import Workload

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
HOROVOD_FOLDER = "horovod"
"""The folder of it in the environment of an MPI."""
OVERLAPPED, AFTER_BACKWARD, COMPUTE = "overlapped", "after-backward", "compute-alone"
GRPC = "grpc-server"
CACHE, QUERY = "cache", "query"
ALGORITHMS = ("auto", "ring", "recursive-doubling", "rabenseifner", "tree")
"""Of transport hierarchical, by the values of HBMCOMM_BETWEEN_HOSTS."""


def _gradients(title: str, network: str) -> Workload:
    ways = (FUSED, PACKED, ONE_BY_ONE, ONE_BY_ONE_ARENA, MPI_ONE_BY_ONE, MPI_FUSED, GLOO_BUCKETS)
    return Workload(title, (*ways, *HOROVODS), "fusion.gradients", held=2, network=network)


def _overlap(title: str, network: str) -> Workload:
    ways = (OVERLAPPED, AFTER_BACKWARD, COMPUTE, MPI_ONE_BY_ONE, GRPC)
    return Workload(title, ways, "fusion.steps", held=4, network=network)


WORKLOADS = {
    RESNET: _gradients("ResNet-50 gradients", "resnet50"),
    MOBILENET: _gradients("MobileNet gradients", "mobilenet_v1"),
    RESNET_STEP: _overlap("ResNet-50 step, overlapped", "resnet50"),
    MOBILENET_STEP: _overlap("MobileNet step, overlapped", "mobilenet_v1"),
    RESNET_DEVICE: _overlap("ResNet-50 step on a device, overlapped", "resnet50"),
    MOBILENET_DEVICE: _overlap("MobileNet step on a device, overlapped", "mobilenet_v1"),
    POINTERS: Workload("Allreduce of a known buffer", (CACHE, QUERY), "fusion.pointers", held=2),
    BETWEEN_HOSTS: Workload("Allreduce between hosts", ALGORITHMS, "fusion.algorithms", held=1),
}
