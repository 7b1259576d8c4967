"""A pointer is recognised while its memory lives, and never after that."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

import hbmcomm
from hbmcomm.training.fusion import BufferCache, Memory, memory_of

SMALL, LARGE = 2048, 1 << 20  # of float32


@pytest.fixture(params=["numpy", "private", "arena"])
def make(request: pytest.FixtureRequest) -> Any:
    if request.param == "numpy":
        return lambda n: np.ones(n, "float32")
    if request.param == "private":
        return lambda n: hbmcomm.ones(n, "float32", kind="regular")
    comm = hbmcomm.Communicator(MPI.COMM_SELF, kind="regular")
    request.addfinalizer(comm.Free)
    return lambda n: comm.ones(n, "float32")


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_a_freed_and_reallocated_address_misses(make: Callable[[int], Any], elements: int) -> None:
    answers = itertools.count()
    cache = BufferCache(lambda _: next(answers))
    last: dict[int, int] = {}
    for _ in range(50):
        array = make(elements)
        answer = cache.lookup(array)
        assert answer > last.get(array.ctypes.data, -1)
        assert cache.lookup(array) == cache.lookup(array[:]) == answer
        assert len(cache) == 1
        last[array.ctypes.data] = answer
        del array
        assert len(cache) == 0
    assert (cache.misses, cache.hits) == (50, 100)
    assert len(last) < 50, "no address was reused: this test shows nothing"


def test_views_are_known_by_address_and_length_until_the_last_goes() -> None:
    cache = BufferCache(memory_of)
    whole = np.ones(100)
    half = whole[:50]
    cache.lookup(whole)
    cache.lookup(half)
    assert (cache.misses, len(cache)) == (2, 2)
    del whole
    assert len(cache) == 2  # the view keeps the memory
    cache.lookup(half)
    assert cache.hits == 1
    del half
    assert len(cache) == 0


def test_an_array_that_is_known_cannot_change_its_memory() -> None:
    cache = BufferCache(memory_of)
    array = np.ones(10)
    cache.lookup(array)
    with pytest.raises(ValueError, match="resize"):
        array.resize(10_000_000, refcheck=False)


def test_memory_of_other_owners_is_asked_for_in_each_call() -> None:
    cache = BufferCache(memory_of)
    foreign = np.frombuffer(bytearray(64), np.uint8)
    for _ in range(3):
        assert cache.lookup(foreign).source is None
    assert (cache.misses, len(cache)) == (3, 0)


def test_strided_and_empty_arrays() -> None:
    cache = BufferCache(memory_of)
    whole, empty = np.ones((8, 8)), np.ones(0)
    for _ in range(2):
        assert cache.lookup(whole[:, 1]).source is None
        assert cache.lookup(empty) == Memory(None, None)
    assert (cache.misses, cache.hits) == (3, 1)


def test_an_arena_array_is_seen_as_one() -> None:
    with hbmcomm.Communicator(MPI.COMM_SELF, kind="regular", transport="direct") as comm:
        memory = memory_of(comm.ones(10))
        assert memory.source == "arena"
        assert memory.node is None or memory.node in hbmcomm.topology().memory_nodes
