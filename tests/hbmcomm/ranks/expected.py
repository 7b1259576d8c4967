"""What a drawn call must leave behind, computed by NumPy from every rank's contents.

Reductions go from rank 0 upwards, element by element; halves are added in float32 and rounded
once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from drawn import HALVES, Call, contents

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
    if call.name == "Barrier" or (call.name in ("Gather", "Reduce") and rank != call.root):
        return None
    if call.name == "Bcast":
        return contents(call, call.root, 0)
    if call.name == "Scatter":
        whole = contents(call, call.root, 0)
        return None if call.is_in_place(rank) else _block(call, whole, rank)
    if call.name == "Alltoall":
        return np.concatenate([_block(call, given(call, r), rank) for r in range(call.ranks)])
    everything = [given(call, r) for r in range(call.ranks)]
    if call.name in ("Gather", "Allgather"):
        return np.concatenate(everything)
    if call.name == "Reduce_scatter_block":
        everything = [_block(call, each, rank) for each in everything]
    return combine(everything, call.op, call.dtype in HALVES)


def given(call: Call, rank: int) -> np.ndarray:
    """The elements that a rank contributes, in place or not."""
    if not call.is_in_place(rank):
        return contents(call, rank, 0)
    whole = contents(call, rank, 1)
    return _block(call, whole, rank) if call.name in ("Gather", "Allgather") else whole


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
