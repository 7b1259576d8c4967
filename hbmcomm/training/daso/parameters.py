"""Parameters and gradients as NumPy arrays, wherever they come from, and one array that holds many.

It knows nothing of ranks. torch is not imported: its optimizers and tensors are recognised by their
attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Trained(Protocol):
    """What DASO needs of a network and its optimizer; lists are in the same order on all ranks."""

    def parameters(self) -> list[Array]:
        """Views of the parameters; writing to them changes the network."""

    def gradients(self) -> list[Array]:
        """Views of their gradients, in the same order and shapes."""

    def step(self) -> None:
        """Update the parameters by the gradients."""


class Arrays:
    """A network in NumPy.

    Args:
        parameters: Arrays of one dtype, which `step` updates in place.
        gradients: Arrays of the same shapes, which the backward pass writes in place.
        step: Any update of the parameters by the gradients, such as SGD.
    """

    def __init__(
        self, parameters: Sequence[Array], gradients: Sequence[Array], step: Callable[[], object]
    ) -> None:
        shapes = [[array.shape for array in arrays] for arrays in (parameters, gradients)]
        if shapes[0] != shapes[1]:
            raise ValueError(
                f"parameters have the shapes {shapes[0]} and gradients {shapes[1]}: "
                "give one gradient for each parameter, of its shape"
            )
        self._parameters, self._gradients, self._step = list(parameters), list(gradients), step

    def parameters(self) -> list[Array]:
        return self._parameters

    def gradients(self) -> list[Array]:
        return self._gradients

    def step(self) -> None:
        self._step()


class TorchOptimizer:
    """An optimizer of torch over tensors in the memory of the CPU."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._tensors = [
            tensor
            for group in optimizer.param_groups
            for tensor in group["params"]
            if tensor.requires_grad
        ]
        for tensor in self._tensors:
            if tensor.device.type != "cpu" or str(tensor.dtype) not in _OF_NUMPY:
                raise ValueError(
                    f"a parameter is {tensor.dtype} on {tensor.device}: DASO takes "
                    f"{', '.join(_OF_NUMPY)} on the CPU"
                )

    def parameters(self) -> list[Array]:
        return [tensor.data.numpy() for tensor in self._tensors]

    def gradients(self) -> list[Array]:
        """A parameter that the loss did not depend on gets a gradient of zeros."""
        for tensor in self._tensors:
            if tensor.grad is None:
                tensor.grad = tensor.data.new_zeros(tensor.shape)
        return [tensor.grad.numpy() for tensor in self._tensors]

    def step(self) -> None:
        self._optimizer.step()


_OF_NUMPY = ("torch.float16", "torch.float32", "torch.float64")


def adapted(optimizer: Any) -> Trained:
    """An optimizer of torch, or an object with the methods of `Trained`, as the latter.

    Raises:
        TypeError: It is neither.
    """
    if hasattr(optimizer, "param_groups"):
        return TorchOptimizer(optimizer)
    if not all(hasattr(optimizer, name) for name in ("parameters", "gradients", "step")):
        raise TypeError(
            f"Daso takes an optimizer of torch or Arrays; found {type(optimizer).__name__}: "
            "give Arrays(parameters, gradients, step)"
        )
    trained: Trained = optimizer
    return trained


class Flat:
    """One array that holds many, one after another.

    Args:
        like: Arrays of the shapes and the order.
        memory: As many elements as all of them.

    Attributes:
        whole: The one array.
        parts: Views of it in the shapes of `like`.
    """

    def __init__(self, like: Sequence[Array], memory: Array) -> None:
        self.whole = memory
        ends = np.cumsum([array.size for array in like])
        self.parts = [
            memory[end - array.size : end].reshape(array.shape)
            for array, end in zip(like, ends, strict=True)
        ]

    def pack(self, arrays: Sequence[Array]) -> None:
        """Copy the arrays into this one."""
        for part, array in zip(self.parts, arrays, strict=True):
            np.copyto(part, array)

    def unpack(self, arrays: Sequence[Array], factor: float = 1.0) -> None:
        """Copy them back, each element multiplied by `factor`."""
        for part, array in zip(self.parts, arrays, strict=True):
            np.multiply(part, factor, out=array)
