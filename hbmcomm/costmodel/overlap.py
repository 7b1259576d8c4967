"""A step of training: layers computed backwards, their gradients exchanged in buckets meanwhile.

After Barrachina et al., "Using machine learning to model the training scalability of convolutional
neural networks on clusters of GPUs", Computing 105 (2023), and the buckets of PyTorch's
DistributedDataParallel (Li et al., VLDB 13 (2020)). Exchanges follow one another, and a bucket is
exchanged once its last gradient is there. That takes a processor beside the one that computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hbmcomm.costmodel.machine import CostModelError


class Layer(NamedTuple):
    """A layer, or one of its tensors.

    Attributes:
        seconds: of its backward computation.
        nbytes: of its gradients.
    """

    seconds: float
    nbytes: int


class Bucket(NamedTuple):
    """Gradients that are exchanged together.

    Attributes:
        layers: how many of the layers are computed when they are all there.
    """

    layers: int
    nbytes: int


class Step(NamedTuple):
    """The times of a step, in seconds.

    Attributes:
        computation: forward and backward.
        communication: of all buckets.
        whole: of the step.
    """

    computation: float
    communication: float
    whole: float

    @property
    def exposed(self) -> float:
        """What communication adds to the computation."""
        return self.whole - self.computation


def buckets(layers: Sequence[Layer], least: int) -> list[Bucket]:
    """Consecutive layers, in the order of the backward pass, until they have `least` bytes.

    The last bucket has what is left. Layers without gradients belong to the bucket after them.
    """
    groups, filled = list[Bucket](), 0
    for number, layer in enumerate(layers, 1):
        filled += layer.nbytes
        if filled >= least or (filled and number == len(layers)):
            groups.append(Bucket(number, filled))
            filled = 0
    return groups


def step(
    layers: Sequence[Layer],
    exchange: Callable[[int], float],
    *,
    forward: float = 0.0,
    bucket: int = 25 * 2**20,
    overlapped: bool = True,
) -> Step:
    """The time of a step.

    Args:
        layers: in the order of the backward pass: the last layer of the network first.
        exchange: seconds to exchange so many bytes.
        forward: seconds before the backward pass.
        bucket: bytes from which on gradients are exchanged; the default is PyTorch's.
        overlapped: buckets are exchanged as soon as they are full; else after the backward pass.

    Raises:
        CostModelError: a bucket of less than a byte, or a time below 0.
    """
    if bucket < 1 or forward < 0 or any(layer.seconds < 0 for layer in layers):
        raise CostModelError(
            f"buckets of {bucket} bytes and times of {forward} s cannot be: name a bucket of a "
            "byte or more, and times of 0 s or more"
        )
    ends, now = [forward], forward
    for layer in layers:
        now += layer.seconds
        ends.append(now)
    free, total = forward if overlapped else now, 0.0
    for group in buckets(layers, bucket):
        taken = exchange(group.nbytes)
        total += taken
        free = max(free, ends[group.layers] if overlapped else now) + taken
    return Step(now, total, max(now, free))
