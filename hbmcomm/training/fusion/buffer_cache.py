"""What is known of the memory of an array, remembered by its address and length.

A query asks the library and the kernel; a lookup recognises the pointer. An entry lasts as long as
the owner of the memory: once that is freed, the same address is unknown. The idea is the pointer
cache of Awan et al. (CCGrid 2019). Knows no communicator.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from cffi import FFI
from numpy.typing import NDArray

from hbmcomm import node_of, source

_ffi: Any = FFI()

Known = TypeVar("Known")
Array = NDArray[Any]
Key = tuple[int, int]


class Memory(NamedTuple):
    """What allocated an array's memory (`hbmcomm.source`), and the NUMA node of its first page."""

    source: str | None
    node: int | None
    """None: the kernel does not say, or the page was never written."""


def memory_of(array: Array) -> Memory:
    """The memory of an array now: two questions, one of them to the kernel."""
    return Memory(source(array), node_of(array))


class BufferCache(Generic[Known]):
    """Answers of a query, by (address, bytes) of arrays.

    Remembers arrays of NumPy's own memory and of hbmcomm's, and views of both. Memory of any other
    owner, such as a torch tensor, may change while the owner lives: its query runs in every call.
    Serves one thread at a time; arrays may be freed on any thread.

    Attributes:
        hits, misses: lookups that found an answer, and those that ran the query.
    """

    def __init__(self, query: Callable[[Array], Known]) -> None:
        self._query = query
        self._found: dict[Key, Known] = {}
        self._owners: dict[int, tuple[weakref.ref[Any], list[Key]]] = {}
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._found)

    def lookup(self, array: Array) -> Known:
        """The answer for an array; errors are those of the query."""
        key = (_address_of(array), array.nbytes)
        try:
            answer = self._found[key]
        except KeyError:
            pass
        else:
            self.hits += 1
            return answer
        self.misses += 1
        answer = self._query(array)
        if array.nbytes:
            self._remember(key, array, answer)
        return answer

    def _remember(self, key: Key, array: Array, answer: Known) -> None:
        owner: Any = array
        while isinstance(owner, np.ndarray) and owner.base is not None:
            owner = owner.base
        is_numpy = isinstance(owner, np.ndarray) and owner.flags.owndata
        if not is_numpy and source(array) is None:
            return
        number = id(owner)
        if number not in self._owners:
            answers, owners = self._found, self._owners

            def forget(_: object) -> None:  # before the memory is freed, and before `id` is reused
                for stale_key in owners.pop(number)[1]:
                    del answers[stale_key]

            self._owners[number] = (weakref.ref(owner, forget), [])
        self._found[key] = answer
        self._owners[number][1].append(key)


def _address_of(array: Array) -> int:
    """The address of the first element; NumPy's own way takes three times as long."""
    try:
        return int(_ffi.cast("uintptr_t", _ffi.from_buffer(array)))
    except (BufferError, ValueError, TypeError):  # strided, or of a type without a buffer
        return int(array.__array_interface__["data"][0])
