"""Operations that a program defines, on entries of any number of bytes.

The first half of an entry's bytes is combined in another way than the second, so that a result
shows where an entry was cut. "ordered" is associative and not commutative.
"""

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI


def _composition() -> np.ndarray:
    """At [f, g]: f after g, of the maps x -> (a * x + b) modulo 16; a byte holds a and b."""
    a, b = np.arange(256) % 16, np.arange(256) // 16
    factor = a[:, None] * a[None, :] % 16
    rest = (a[:, None] * b[None, :] + b[:, None]) % 16
    return (factor + 16 * rest).astype("u1").reshape(-1)


_COMPOSED = _composition()


def combine(left: np.ndarray, right: np.ndarray, op: str, entry: int) -> np.ndarray:
    """The bytes of `left` and `right`, which have whole entries, combined."""
    assert left.size == right.size and (left.size % entry == 0 if entry else not left.size)
    result = left + right
    if entry:
        first = (slice(None), slice(0, (entry + 1) // 2))
        x, y = (operand.reshape(-1, entry)[first] for operand in (left, right))
        is_ordered = op == "ordered"
        result.reshape(-1, entry)[first] = (
            _COMPOSED[x.astype(np.intp) * 256 + y] if is_ordered else np.maximum(x, y)
        )
    return result


def combined(operands: Sequence[np.ndarray], op: str, entry: int) -> np.ndarray:
    """All operands combined in their order."""
    result = operands[0].copy()
    for operand in operands[1:]:
        result = combine(result, operand, op, entry)
    return result


@functools.cache
def entry_type(entry: int) -> MPI.Datatype:
    """The datatype of entries, which is never freed: both buffers of a call must have the same."""
    return MPI.BYTE.Create_contiguous(entry).Commit()


@functools.cache
def operation(op: str) -> MPI.Op:
    """The operation for MPI, which never frees it."""

    def function(given: Any, kept: Any, datatype: MPI.Datatype) -> None:
        left, right = np.frombuffer(given, "u1"), np.frombuffer(kept, "u1")
        right[:] = combine(left, right, op, datatype.Get_size())

    return MPI.Op.Create(function, commute=op != "ordered")
