"""What a drawn call must leave behind, computed by NumPy from every rank's contents.

Reductions go from rank 0 upwards, element by element; halves are added in float32 and rounded
once.
"""

from collections.abc import Callable, Sequence

import numpy as np
from drawn.calls import HALVES, SCATTERS, TO_ROOT, Call, contents
from drawn.entries import combined

UFUNCS: dict[str, np.ufunc] = {
    "SUM": np.add,
    "PROD": np.multiply,
    "MAX": np.maximum,
    "MIN": np.minimum,
    "LAND": np.logical_and,
    "LOR": np.logical_or,
    "LXOR": np.logical_xor,
    "BAND": np.bitwise_and,
    "BOR": np.bitwise_or,
    "BXOR": np.bitwise_xor,
}


def expected(call: Call, rank: int) -> np.ndarray | None:
    """The elements that `rank` holds afterwards; None where it takes nothing."""
    if call.name in TO_ROOT and rank != call.root:
        return None
    if call.name in SCATTERS and call.is_in_place(rank):
        return None
    if (parts := call.parts(rank, 1)) is not None:
        whole = contents(call, rank, 1).copy()
        for giver, (begin, length) in enumerate(parts):
            whole[begin : begin + length] = sent(call, giver, rank)
        return whole
    if not call.reduces:
        return _MOVED[call.name](call, rank)
    operands = _operands(call, rank)
    if call.entry is not None:
        return combined(operands, call.op, call.entry) if operands else None
    return combine(operands, call.op, call.dtype in HALVES) if operands else None


_MOVED: dict[str, Callable[[Call, int], np.ndarray | None]] = {
    "Barrier": lambda call, rank: None,
    "Bcast": lambda call, rank: contents(call, call.root, 0),
    "Scatter": lambda call, rank: _block(call, contents(call, call.root, 0), rank),
    "Scatterv": lambda call, rank: sent(call, call.root, rank),
    "Gather": lambda call, rank: np.concatenate(_given_by_all(call)),
    "Allgather": lambda call, rank: np.concatenate(_given_by_all(call)),
    "Alltoall": lambda call, rank: np.concatenate(
        [_block(call, whole, rank) for whole in _given_by_all(call)]
    ),
}
"""What a rank takes in calls that move blocks of one length."""


def _operands(call: Call, rank: int) -> list[np.ndarray]:
    """What is reduced for `rank`, in rank order."""
    everything = _given_by_all(call)
    match call.name:
        case "Reduce_scatter_block":
            return [_block(call, whole, rank) for whole in everything]
        case "Reduce_scatter":
            begin = sum(call.length(0, other) for other in range(rank)) * call.unit
            end = begin + call.length(0, rank) * call.unit
            return [whole[begin:end] for whole in everything]
        case "Scan":
            return everything[: rank + 1]
        case "Exscan":
            return everything[:rank]
    return everything


def _given_by_all(call: Call) -> list[np.ndarray]:
    return [given(call, rank) for rank in range(call.ranks)]


def given(call: Call, rank: int) -> np.ndarray:
    """The elements that a rank contributes, in place or not."""
    if not call.is_in_place(rank):
        return contents(call, rank, 0)
    whole = contents(call, rank, 1)
    return _block(call, whole, rank) if call.name in ("Gather", "Allgather") else whole


def sent(call: Call, rank: int, to: int) -> np.ndarray:
    """The block that a rank gives another, where blocks have different lengths."""
    role = int(call.is_in_place(rank) and call.name != "Scatterv")
    whole, parts = contents(call, rank, role), call.parts(rank, role)
    if parts is None:
        return whole
    begin, length = parts[to if call.name in ("Scatterv", "Alltoallv") else rank]
    return whole[begin : begin + length]


def combine(operands: Sequence[np.ndarray], op: str, rounded_once: bool = False) -> np.ndarray:
    """The reduction in rank order."""
    dtype, ufunc = operands[0].dtype, UFUNCS[op]
    width = np.dtype(np.float32) if rounded_once else dtype
    result = operands[0].astype(width)
    if len(operands) == 1:  # a reduction of one is a copy, whatever the operation
        return result.astype(dtype)
    for operand in operands[1:]:
        result = ufunc(result, operand.astype(width)).astype(width, copy=False)
    return result.astype(dtype)


def _block(call: Call, whole: np.ndarray, rank: int) -> np.ndarray:
    size = call.count * call.unit
    return whole[rank * size : (rank + 1) * size]
