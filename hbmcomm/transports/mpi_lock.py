"""Functions of MPI that wait for its lock, called without Python's.

mpi4py holds Python's lock in them. Under an MPI with one lock (Intel's), another thread may be
inside MPI with that lock, and wait for Python's to run a function of the program, an MPI.Op: then
both threads wait for ever. A collective of mpi4py calls none of these functions, so no program
expects that.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray

_INT_MAX = 2**31 - 1


def handle_of(of: Any, kind: type) -> int:
    """MPI's handle in an object of mpi4py."""
    return int(_word(kind).from_address(MPI._addressof(of)).value)


def is_commutative(op: MPI.Op) -> bool:
    """As op.Is_commutative()."""
    function, answer = _function("MPI_Op_commutative"), ctypes.c_int()
    if function is None:
        return op.Is_commutative()
    _check(function(_of(op, MPI.Op), ctypes.byref(answer)))
    return bool(answer.value)


def pack_size(datatype: MPI.Datatype, entries: int) -> int:
    """As datatype.Pack_size(entries, MPI.COMM_SELF)."""
    function, answer = _function("MPI_Pack_size"), ctypes.c_int()
    if function is None or entries * datatype.size > _INT_MAX // 2 or entries > _INT_MAX:
        return datatype.Pack_size(entries, MPI.COMM_SELF)
    self = _of(MPI.COMM_SELF, MPI.Comm)
    _check(function(ctypes.c_int(entries), _of(datatype, MPI.Datatype), self, ctypes.byref(answer)))
    return answer.value


class Made(NamedTuple):
    """How MPI made a datatype that is not predefined.

    Attributes:
        combiner: what made it, such as MPI.COMBINER_VECTOR.
        integers: arguments that are C's int.
        numbers: all arguments that are numbers: integers, large counts, addresses.
        bases: the datatypes that it is made of; they exist inside the block alone.
    """

    combiner: int
    integers: NDArray[np.int64]
    numbers: NDArray[np.int64]
    bases: list[MPI.Datatype]


@contextmanager
def made(datatype: MPI.Datatype) -> Iterator[Made]:
    """As datatype.Get_envelope() and datatype.Get_contents()."""
    *lengths, number, combiner = datatype.Get_envelope()
    integers, addresses, counts, bases = _contents(datatype, lengths, number)
    try:
        yield Made(combiner, integers, np.concatenate([integers, counts, addresses]), bases)
    finally:
        for base in bases:
            if not base.is_predefined:
                _free(base)


def _contents(datatype: MPI.Datatype, lengths: list[int], number: int) -> tuple[Any, ...]:
    """The integers, addresses, large counts and datatypes that MPI made it of."""
    large = "_c" if lengths[2] else ""
    function = _function(f"MPI_Type_get_contents{large}")
    if function is None:
        *numbers, bases = datatype.Get_contents()
        return *(np.array(part, np.int64) for part in numbers), bases
    small = np.zeros(lengths[0], np.intc)
    addresses, counts = (np.zeros(length, np.int64) for length in lengths[1:])
    handles = (_word(MPI.Datatype) * max(number, 1))()
    size = ctypes.c_int64 if large else ctypes.c_int
    room = [size(length) for length in (*(lengths if large else lengths[:2]), number)]
    arrays = (small, addresses, counts) if large else (small, addresses)
    into = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    _check(function(_of(datatype, MPI.Datatype), *room, *into, handles))
    bases = [MPI.Datatype.fromhandle(handle) for handle in handles[:number]]
    return small.astype(np.int64), addresses, counts, bases


def _free(datatype: MPI.Datatype) -> None:
    function = _function("MPI_Type_free")
    if function is None:
        datatype.Free()
        return
    handle = _word(MPI.Datatype)(handle_of(datatype, MPI.Datatype))
    _check(function(ctypes.byref(handle)))


def _word(kind: type) -> Any:
    return {4: ctypes.c_uint32, 8: ctypes.c_uint64}[MPI._sizeof(kind)]


def _of(thing: Any, kind: type) -> Any:
    return _word(kind)(handle_of(thing, kind))


_library = ctypes.CDLL(MPI.__file__)


def _function(name: str) -> Any:
    """The function of the library that mpi4py has loaded, if it exports it. Releases the lock."""
    return getattr(_library, name, None)


def _check(code: int) -> None:
    if code:
        raise MPI.Exception(code)
