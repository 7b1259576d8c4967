"""What a drawn call must leave behind, computed by NumPy from every rank's contents.

Reductions go from rank 0 upwards, element by element; halves are added in float32 and rounded
once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawn.calls import HALVES, SCANS, Call, contents

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
    to_root = call.name in ("Gather", "Gatherv", "Reduce")
    if call.name == "Barrier" or (to_root and rank != call.root):
        return None
    if call.name == "Bcast":
        return contents(call, call.root, 0)
    if call.name in ("Scatter", "Scatterv") and call.is_in_place(rank):
        return None
    if call.name == "Scatter":
        return _block(call, contents(call, call.root, 0), rank)
    if call.name == "Scatterv":
        return sent(call, call.root, rank)
    if (parts := call.parts(rank, 1)) is not None:
        whole = contents(call, rank, 1)
        for giver, (begin, length) in enumerate(parts):
            whole[begin : begin + length] = sent(call, giver, rank)
        return whole
    if call.name == "Alltoall":
        return np.concatenate([_block(call, given(call, r), rank) for r in range(call.ranks)])
    everything = [given(call, r) for r in range(call.ranks)]
    if call.name in ("Gather", "Allgather"):
        return np.concatenate(everything)
    if call.name == "Reduce_scatter_block":
        everything = [_block(call, each, rank) for each in everything]
    if call.name == "Reduce_scatter":
        begin = sum(call.length(0, other) for other in range(rank))
        everything = [each[begin : begin + call.length(0, rank)] for each in everything]
    if call.name in SCANS:
        everything = everything[: rank + (call.name == "Scan")]
        if not everything:
            return None
    return combine(everything, call.op, call.dtype in HALVES)


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
    for each in operands[1:]:
        result = ufunc(result, each.astype(width)).astype(width, copy=False)
    return result.astype(dtype)


def _block(call: Call, whole: np.ndarray, rank: int) -> np.ndarray:
    return whole[rank * call.count : (rank + 1) * call.count]
