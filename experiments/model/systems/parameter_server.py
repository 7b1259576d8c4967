"""Steps of a parameter server, beside other designs of one, and beside it without its parts."""

from experiments.model.systems.workload import Workload

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


WORKLOADS = {
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
