"""One submitted tensor, as the program waits for it."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from hbmcomm.training.fusion.negotiation import Signature, TensorMissing


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
