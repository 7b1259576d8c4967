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
from typing import Any

from mpi4py import MPI

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


@contextmanager
def bases(datatype: MPI.Datatype) -> Iterator[list[MPI.Datatype]]:
    """The datatypes of which one that is not predefined is made; they exist inside alone."""
    function, free = _function("MPI_Type_get_contents"), _function("MPI_Type_free")
    integers, addresses, counts, number, _ = datatype.Get_envelope()
    if function is None or free is None or counts:
        base, _, _ = datatype.decode()
        yield [base] if isinstance(base, MPI.Datatype) else list(base)
        return
    word = _word(MPI.Datatype)
    handles = (word * max(number, 1))()
    lengths = (ctypes.c_int * max(integers, 1))()
    places = (ctypes.c_ssize_t * max(addresses, 1))()
    room = (ctypes.c_int(integers), ctypes.c_int(addresses), ctypes.c_int(number))
    _check(function(_of(datatype, MPI.Datatype), *room, lengths, places, handles))
    components = [MPI.Datatype.fromhandle(handle) for handle in handles[:number]]
    try:
        yield components
    finally:
        for component in components:
            if not component.is_predefined:
                _check(free(ctypes.byref(word(handle_of(component, MPI.Datatype)))))


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
