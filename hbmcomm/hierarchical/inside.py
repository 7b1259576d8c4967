"""Calls of the core among the ranks of this host. Addresses, bytes, and numbers inside the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hbmcomm.transports.native import OPERATIONS, ffi, lib
from hbmcomm.transports.operand import Part

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

    def note(self, number: int) -> None:
        """A call that MPI serves, by the core's number: it waits for nobody."""
        self._check(lib.hbm_note(self._core, number))

    def barrier(self) -> None:
        self._check(lib.hbm_barrier(self._core))

    def reduce(self, like: Any, count: int, send: int, recv: int, root: int) -> None:
        """Reduce entries of all ranks into `recv` of the root, by type and operation of a call."""
        self._run("Reduce", _fields(like, count, send, recv, root))

    def reduce_scatter(
        self, like: Any, count: int, send: int, recv: int, parts: Sequence[Part]
    ) -> None:
        """Reduce entries; each rank gets its part, `count` entries."""
        self._run("Reduce_scatter", _fields(like, count, send, recv), parts)

    def bcast(self, address: int, nbytes: int, root: int) -> None:
        """From the root to all, at the same place in the memory of each."""
        for begin in range(0, nbytes, _MOST):
            each = min(_MOST, nbytes - begin)
            self.move("Bcast", each, address + begin, address + begin, root)

    def move(
        self,
        name: str,
        nbytes: int,
        send: int,
        recv: int,
        root: int = 0,
        send_parts: Sequence[Part] | None = None,
        recv_parts: Sequence[Part] | None = None,
    ) -> None:
        """Move bytes by the call of that name; `nbytes` are this rank's own block.

        Args:
            send_parts, recv_parts: One for each rank, on a rank that sends to all or receives from
                all.
        """
        fields = {"dtype": lib.HBM_UINT8, "count": nbytes, "send": send, "recv": recv, "root": root}
        self._run(name, fields, send_parts, recv_parts)

    def _run(
        self,
        name: str,
        fields: dict[str, Any],
        send_parts: Sequence[Part] | None = None,
        recv_parts: Sequence[Part] | None = None,
    ) -> None:
        fields["operation"] = _CODES[name]
        if send_parts is not None:
            fields["send_parts"] = ffi.new("hbm_part[]", send_parts)
        if recv_parts is not None:
            fields["recv_parts"] = ffi.new("hbm_part[]", recv_parts)
        self.run(ffi.new("hbm_call *", fields))


def _fields(like: Any, count: int, send: int, recv: int, root: int = 0) -> dict[str, Any]:
    kind = {field: getattr(like, field) for field in _REDUCED}
    return {**kind, "count": count, "send": send, "recv": recv, "root": root}
