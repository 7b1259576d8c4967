"""What programs submit by name: the array, its type, and where its memory is.

A program submits the same arrays again in every step, which are not looked at again.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hbmcomm.training.fusion.buffer_cache import BufferCache
from hbmcomm.training.fusion.negotiation import Place, Signature, TensorMissing


class _Submitted(NamedTuple):
    """A name's last array."""

    reference: weakref.ref[NDArray[Any]]
    dtype: np.dtype[Any]
    signature: Signature

    def is_of(self, tensor: Any) -> bool:
        """Whether it is that array, as it was; its memory stays where it is while it lives."""
        known = self.reference()
        return (
            known is not None
            and known is tensor
            and known.shape == self.signature.shape
            and known.dtype is self.dtype
            and known.flags.c_contiguous
            and known.flags.writeable
        )


class Submissions:
    """The last array of each name.

    Args:
        place_of: Where in the memory that ranks share an array is, if it is there.
    """

    def __init__(self, place_of: Callable[[NDArray[Any]], Place | None]) -> None:
        self._places = BufferCache(place_of)
        self._last: dict[str, _Submitted] = {}

    def take(self, name: str, tensor: Any) -> tuple[NDArray[Any], Signature]:
        """The array of a tensor, on the same memory, and what other ranks need to know of it.

        Raises:
            TypeError, ValueError: It cannot be reduced in place, or `name` is no string.
        """
        if not isinstance(name, str):  # ranks exchange names as JSON, which has no other keys
            raise TypeError(f"name={name!r}: not a string; submit as str({name!r})")
        last = self._last.get(name)
        if last is not None and last.is_of(tensor):
            return tensor, last.signature
        array = as_array(name, tensor)
        current = Signature(array.shape, name_of(array.dtype), self._places.lookup(array))
        if last is not None and last.signature == current:
            current = last.signature  # equal objects compare quickest
        self._last[name] = _Submitted(weakref.ref(array), array.dtype, current)
        return array, current


class Reduces(Protocol):
    """What reduces submitted tensors."""

    def _wait_for(self, works: tuple[Work, ...]) -> None: ...


class Work:
    """One submitted tensor; `wait` returns when it is reduced on this rank."""

    __slots__ = ("_fused", "array", "done", "error", "name", "signature", "since")

    def __init__(
        self, fused: Reduces, name: str, array: NDArray[Any], signature: Signature
    ) -> None:
        self._fused = fused
        self.name, self.array, self.signature = name, array, signature
        self.since: float | None = None
        """When a round first found it missing on another rank."""
        self.done = False
        self.error: BaseException | None = None

    def wait(self) -> None:
        """Wait for the result, which is in the submitted tensor.

        Raises:
            TensorMismatch: Ranks gave this name to different shapes or types; on every rank.
            TensorMissing: Another rank did not submit it.
            PeerError: A rank died or left.
        """
        self._fused._wait_for((self,))


def missing(name: str, reason: str) -> TensorMissing:
    """The error of a tensor that another rank did not submit."""
    return TensorMissing(f"{name!r} must be submitted on all ranks; found: {reason}")


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
