"""A call in the core's form: built from operands, run or started by the transports."""

from __future__ import annotations

from typing import Any, NamedTuple

from mpi4py import MPI

from hbmcomm.transports.arguments import Operands
from hbmcomm.transports.native import OPERATIONS, SHAPES, ffi, keep_interrupt, lib
from hbmcomm.transports.operand import Operand


class Call(NamedTuple):
    """The argument of `hbm_run` and `hbm_new`, and the objects that it needs to stay alive."""

    call: Any
    kept: tuple[object, ...]
    packs: bool
    """Its data is a copy: another run needs another call."""


def build_call(name: str, operands: Operands) -> Call:
    """The call of an operation on some operands."""
    sent, received = operands.sent, operands.received
    block = _own_block(name, sent, received)
    kept: list[object] = [sent, received]
    fields: dict[str, Any] = {
        "operation": OPERATIONS.index(name),
        "dtype": block.dtype if block else 0,
        "reduction": operands.reduction,
        "root": operands.root,
        "count": block.entries if block else 0,
        "send": sent.address if sent else 0,
        "recv": received.address if received else 0,
    }
    for which, operand in (("send_parts", sent), ("recv_parts", received)):
        if operand is not None and operand.parts is not None:
            parts = ffi.new("hbm_part[]", operand.parts)
            fields[which] = parts
            kept.append(parts)
    if operands.reduction == lib.HBM_USER and operands.op is not None and block is not None:
        function = ffi.new_handle((operands.op, block.datatype))
        fields["reduce"], fields["entry_bytes"] = lib.hbm_user_reduces, block.entry_bytes
        fields["function"] = ffi.cast("uintptr_t", function)
        kept.append(function)
    unpackings, runs = received.unpackings() if received is not None else ([], [])
    if unpackings:
        after = ffi.new("hbm_unpacking[]", unpackings)
        fields["after"], fields["after_count"] = after, len(unpackings)
        kept += [after, *runs]
    packs = any(side is not None and side.packed is not None for side in (sent, received))
    return Call(ffi.new("hbm_call *", fields), tuple(kept), packs)


def with_copied_input(name: str, operands: Operands, size: int) -> Operands:
    """The operands with a copy of the data that is sent."""
    if operands.sent is None:
        return operands
    shape = SHAPES[name]
    blocks = size if shape.sends_each and shape.lengths == lib.HBM_EQUAL else 1
    return operands._replace(sent=operands.sent.copied(blocks))


def _own_block(name: str, sent: Operand | None, received: Operand | None) -> Operand | None:
    """The operand whose type and entries are those of this rank's own block."""
    shape = SHAPES[name]
    if shape.receives_each and not shape.sends_each:
        return sent or received
    return received or sent


@ffi.def_extern(error=-1, onerror=keep_interrupt)  # type: ignore[untyped-decorator]
def hbm_user_reduces(function: int, a: Any, b: Any, entries: int) -> int:
    """Called by the core for an operation that the program defines: b becomes a op b.

    What a signal handler raises here ends the call, and is raised by it.
    """
    op, datatype = ffi.from_handle(ffi.cast("void *", function))
    nbytes = entries * datatype.size
    memory = (MPI.buffer.fromaddress(int(ffi.cast("uintptr_t", ptr)), nbytes) for ptr in (a, b))
    left, right = memory
    op.Reduce_local([left, entries, datatype], [right, entries, datatype])
    return 0
