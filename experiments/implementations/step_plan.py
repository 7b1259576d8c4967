"""What an emulated training step computes and exchanges, and when. Values only.

The computation is that of an accelerator: multiply-adds of a batch over a rate, spread evenly over
the gradient tensors. Its length is ours to choose, so that networks of every kind occur: those that
hide their exchanges behind it, and those that cannot.
"""

from hbmcomm.costmodel import Layer
from hbmcomm.training.networks import gradients

MULTIPLY_ADDS = {"alexnet": 0.72e9, "resnet50": 3.8e9, "mobilenet_v1": 0.569e9}
"""Of a forward pass of one image of 224 x 224. Howard et al., arXiv:1704.04861, has AlexNet and
MobileNet; He et al., arXiv:1512.03385, has ResNet-50."""

BATCH = 8  # images of a rank in one step
RATE = 1.5e12  # multiply-adds per second of the accelerator that is emulated
BUCKET = 4 * 2**20  # bytes from which on gradients are exchanged
ITEM = 4  # bytes of a float32


def forward_seconds(network: str) -> float:
    """Time of the forward pass; the backward pass takes twice as long."""
    return BATCH * MULTIPLY_ADDS[network] / RATE


def layers(network: str) -> list[Layer]:
    """The gradient tensors in the order of the backward pass."""
    tensors = gradients(network)
    seconds = 2 * forward_seconds(network) / len(tensors)
    return [Layer(seconds, ITEM * elements) for _, elements in reversed(tensors)]
