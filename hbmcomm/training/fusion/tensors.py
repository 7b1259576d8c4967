"""NumPy arrays and torch tensors as flat arrays over the same memory."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = "fciu"
"""NumPy's kinds of types that can be added."""


def as_array(name: str, tensor: Any) -> NDArray[Any]:
    """The memory of a NumPy array, or of a torch tensor on the CPU, as an array of its shape.

    Raises:
        TypeError: It is neither, or of a type that NumPy cannot add.
        ValueError: It is not contiguous or not writable.
    """
    array: NDArray[Any] = tensor
    if not isinstance(tensor, np.ndarray):
        try:
            array = (tensor.detach() if tensor.requires_grad else tensor).numpy()
        except (AttributeError, TypeError) as error:
            raise TypeError(
                f"{name!r} must be a NumPy array or a torch tensor of a type that NumPy has, on "
                f"the CPU; found {type(tensor).__name__} ({error})"
            ) from None
    if array.dtype.kind not in NUMBERS or not array.dtype.isnative:
        raise TypeError(
            f"{name!r} must hold numbers that can be added; found {array.dtype}; convert it first"
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise ValueError(
            f"{name!r} must be contiguous and writable; found strides {array.strides} for shape "
            f"{array.shape}; submit a contiguous tensor"
        )
    return array


@functools.cache
def name_of(dtype: np.dtype[Any]) -> str:
    """NumPy's name of a type, which takes NumPy some microseconds."""
    return dtype.name
