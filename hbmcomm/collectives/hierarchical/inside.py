"""Calls of the core among the ranks of this host. Addresses, bytes, and numbers inside the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hbmcomm.collectives.buffers.operand import Part
from hbmcomm.collectives.core.native import OPERATIONS, ffi, lib

_CODES = {name: code for code, name in enumerate(OPERATIONS)}
_REDUCED = ("dtype", "reduction", "reduce", "function", "entry_bytes")
_MOST = 2**30  # bytes of one call of the core


class Inside:
    """The core's communicator of this host's ranks.

    Args:
        core: `hbm_comm *`.
        check: Raises the error of a status that is not 0.
    """

    def __init__(self, core: Any, check: Callable[[int], None]) -> None:
        self._core, self._check = core, check

    def run(self, call: Any) -> None:
        """A call as it is."""
        self._check(lib.hbm_run(self._core, call))

    def barrier(self) -> None:
        self._check(lib.hbm_barrier(self._core))

    def reduce(self, like: Any, count: int, send: int, recv: int, root: int) -> None:
        """Reduce entries of all ranks into `recv` of the root.

        Args:
            like: A call with the same type and reduction.
        """
        self._reduce("Reduce", like, count, send, recv, root=root)

    def reduce_scatter(
        self, like: Any, count: int, send: int, recv: int, parts: Sequence[Part]
    ) -> None:
        """Reduce entries; each rank gets its part, `count` entries."""
        self._reduce("Reduce_scatter", like, count, send, recv, send_parts=_parts(parts))

    def bcast(self, address: int, nbytes: int, root: int) -> None:
        """From the root to all, at the same place in the memory of each."""
        for begin in range(0, nbytes, _MOST):
            each = min(_MOST, nbytes - begin)
            self._move("Bcast", each, address + begin, address + begin, root=root)

    def gatherv(
        self, nbytes: int, send: int, recv: int, parts: Sequence[Part] | None, root: int
    ) -> None:
        """From all to the root, which alone gives parts: one of `recv` for each rank."""
        self._move("Gatherv", nbytes, send, recv, root=root, recv_parts=_parts(parts))

    def scatterv(
        self, nbytes: int, send: int, recv: int, parts: Sequence[Part] | None, root: int
    ) -> None:
        """From the root, which alone gives parts, to all: `nbytes` for this one."""
        self._move("Scatterv", nbytes, send, recv, root=root, send_parts=_parts(parts))

    def allgatherv(self, nbytes: int, send: int, recv: int, parts: Sequence[Part]) -> None:
        """From all to all: one part of `recv` for each rank."""
        self._move("Allgatherv", nbytes, send, recv, recv_parts=_parts(parts))

    def alltoallv(
        self, own: int, send: int, recv: int, sent: Sequence[Part], received: Sequence[Part]
    ) -> None:
        """From each rank to each; `own` bytes of this one to itself."""
        parts = {"send_parts": _parts(sent), "recv_parts": _parts(received)}
        self._move("Alltoallv", own, send, recv, **parts)

    def _move(self, name: str, nbytes: int, send: int, recv: int, **more: Any) -> None:
        dtype = lib.HBM_UINT8
        self._run(name, {"dtype": dtype, "count": nbytes, "send": send, "recv": recv, **more})

    def _reduce(self, name: str, like: Any, count: int, send: int, recv: int, **more: Any) -> None:
        kind = {field: getattr(like, field) for field in _REDUCED}
        self._run(name, {**kind, "count": count, "send": send, "recv": recv, **more})

    def _run(self, name: str, fields: dict[str, Any]) -> None:
        given = {field: value for field, value in fields.items() if value is not None}
        self.run(ffi.new("hbm_call *", {"operation": _CODES[name], **given}))


def _parts(parts: Sequence[Part] | None) -> Any:
    return None if parts is None else ffi.new("hbm_part[]", list(parts))
