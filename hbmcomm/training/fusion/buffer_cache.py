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
from numpy.typing import NDArray

from hbmcomm.memory import kernel
from hbmcomm.memory.arrays import owner_of, source
from hbmcomm.memory.blocks import Block, Source
from hbmcomm.transports.native import ffi, lib, register

Known = TypeVar("Known")
Array = NDArray[Any]
Key = tuple[int, int]


class Memory(NamedTuple):
    """What allocated an array's memory (`hbmcomm.source`), and the NUMA node of its first page."""

    source: Source | None
    node: int | None
    """None: the kernel does not say, or the page was never written."""


def memory_of(array: Array) -> Memory:
    """The memory of an array now: two questions, one of them to the kernel."""
    try:
        node = kernel.node_of(array.__array_interface__["data"][0]) if array.size else None
    except OSError:
        node = None
    return Memory(source(array), node)


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
        self._address, self._entries = ffi.new("uintptr_t *"), ffi.new("uint64_t *")
        self._is_fast = register()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._found)

    def lookup(self, array: Array) -> Known:
        """The answer for an array; errors are those of the query."""
        if self._is_fast and lib.hbm_read_array(id(array), 0, self._address, self._entries) >= 0:
            key = (self._address[0], array.nbytes)
        else:
            key = (array.__array_interface__["data"][0], array.nbytes)
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
        owner = owner_of(array)
        if not isinstance(owner, Block) and not (
            isinstance(owner, np.ndarray) and owner.flags.owndata
        ):
            return
        number = id(owner)
        if number not in self._owners:
            found, owners = self._found, self._owners

            def forget(_: object) -> None:  # before the memory is freed, and before `id` is reused
                for each in owners.pop(number)[1]:
                    del found[each]

            self._owners[number] = (weakref.ref(owner, forget), [])
        self._found[key] = answer
        self._owners[number][1].append(key)
