"""Inside `numpy_memory` NumPy makes its larger arrays in shared memory."""

import contextvars
import gc
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hbmcomm import source
from hbmcomm.memory import arrays, capacity
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.segment_cache import SegmentCache

pytestmark = pytest.mark.alone

KIB, MIB = 2**10, 2**20


def alone(segments: SegmentCache) -> Arena:
    return create_arena(
        lambda value: [value], 0, 1, lambda: resolve("regular"), 100, segments=segments
    )[0]


@pytest.fixture
def arena() -> Arena:
    return alone(SegmentCache())


def taken(arena: Arena) -> int:
    return arena.pool.heap.usage.taken


def shared(arena: Arena, array: Any) -> bool:
    return arena.holds(SimpleNamespace(address=array.ctypes.data))


def test_arrays_of_64_kib_and_more_are_shared_memory(arena: Arena) -> None:
    with arena.numpy_memory() as kind:
        small, large = np.empty(64 * KIB - 1, "u1"), np.empty(64 * KIB, "u1")
        zeros, huge = np.zeros((300, 400)), np.ones(5 * MIB, "u1")
        summed = zeros + 1
    outside = np.empty(MIB)
    assert kind.name == "regular"
    assert [shared(arena, array) for array in (small, outside)] == [False, False]
    assert all(shared(arena, array) for array in (large, zeros, huge, summed, huge[5:9]))
    assert large.ctypes.data % 64 == 0 and huge.ctypes.data % (2 * MIB) == 0
    assert source(large) == source(large[::2]) == "arena"
    assert source(small) is None and source(outside) is None
    assert not zeros.any() and (summed == 1).all()
    del large, zeros, huge, summed
    assert taken(arena) == 0


def test_an_array_of_an_arena_is_as_good_as_its_own(arena: Arena) -> None:
    factory = arrays.ArrayFactory(arena.kind, arena.allocate, arena.holds)
    with arena.numpy_memory():
        x = np.ones(10_000)
    assert factory.asarray(x, None) is x
    y = np.ones(10_000)
    assert factory.asarray(y, None) is not y


def test_arrays_keep_their_memory_when_all_else_is_gone() -> None:
    own = SegmentCache()
    arena = alone(own)
    with arena.numpy_memory():
        array = np.full(MIB, 5, "u1")
        small = np.ones(10)
    view = array[10:20]
    del array, arena
    gc.collect()
    assert (view == 5).all() and source(view) == "arena"
    again = alone(own)  # finds the segment that the array keeps
    assert shared(again, view)
    del view, again
    gc.collect()
    assert (small == 1).all()
    assert "memfd:hbmcomm" in Path("/proc/self/maps").read_text()  # the small one keeps it
    del small
    gc.collect()
    assert "memfd:hbmcomm" not in Path("/proc/self/maps").read_text()


def test_a_context_that_is_left_and_used_again_still_works(arena: Arena) -> None:
    with arena.numpy_memory():
        kept = contextvars.copy_context()
    del arena
    gc.collect()
    array = kept.run(np.ones, MIB)
    assert source(array) == "arena" and array.all()


def test_a_thread_started_inside_keeps_numpys_own_memory(arena: Arena) -> None:
    in_arena: list[bool] = []
    with arena.numpy_memory():
        thread = threading.Thread(target=lambda: in_arena.append(shared(arena, np.empty(MIB))))
        thread.start()
        thread.join()
    assert in_arena == [False]


def test_contexts_nest_and_exceptions_restore(arena: Arena) -> None:
    other = alone(SegmentCache())
    with arena.numpy_memory():
        with pytest.raises(KeyError), other.numpy_memory():
            assert shared(other, np.empty(MIB))
            raise KeyError
        assert shared(arena, np.empty(MIB))
    assert source(np.empty(MIB)) is None


def test_what_the_nodes_have_not_comes_from_ordinary_memory(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: 0)
    with arena.numpy_memory():
        array = np.ones(MIB)
    assert not shared(arena, array) and array.all()
    del array
    assert taken(arena) == 0


ARENA = """
import atexit, signal, sys
import numpy as np
from mpi4py import rc
rc.initialize = False
from hbmcomm import source
from hbmcomm.memory import kernel
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.pool import lib
arena, _ = create_arena(lambda value: [value], 0, 1, lambda: resolve("regular"), 100)
"""
AT_EXIT = """
entered = arena.numpy_memory()
entered.__enter__()
kept = [np.ones(100_000) for _ in range(5)]
cycle = [np.ones(100_000)]
cycle.append(cycle)
sys.kept = np.ones(100_000)
atexit.register(lambda: print(np.ones(100_000).sum(), kept[0].sum()))
block = np.asarray(arena.allocate(1000))
"""
INTERRUPTED = """
kernel.populate = lambda *_: signal.raise_signal(signal.SIGINT)
try:
    with arena.numpy_memory():
        array = np.ones(100_000)
        for _ in range(10**6):
            pass
except KeyboardInterrupt:
    print("interrupted", source(np.ones(100_000)))
"""
ONCE = """
populate = kernel.populate
def once(*arguments):
    kernel.populate = populate
    signal.raise_signal(signal.SIGINT)
kernel.populate = once
try:
    lib.hbm_heap_allocate(arena.heap, 1 << 22, 64)
    for _ in range(10**6):
        pass
except KeyboardInterrupt:
    print("interrupted", lib.hbm_heap_allocate(arena.heap, 1 << 22, 64) >= 1 << 22)
"""
BEFORE = """
class Enough(Exception):
    pass
def once(frame, event, _):
    if event == "call" and frame.f_code.co_name == "hbm_heap_grows":
        sys.setprofile(None)
        raise Enough
try:
    sys.setprofile(once)
    lib.hbm_heap_allocate(arena.heap, 1 << 22, 64)
    for _ in range(10**6):
        pass
except Enough:
    print("interrupted", lib.hbm_heap_allocate(arena.heap, 1 << 22, 64) >= 1 << 22)
"""


@pytest.mark.parametrize(
    ("program", "output"),
    [
        pytest.param(AT_EXIT, "100000.0 100000.0", id="arrays and a context at exit"),
        pytest.param(INTERRUPTED, "interrupted None", id="Ctrl-C is not lost"),
        pytest.param(ONCE, "interrupted True", id="interrupt halfway"),
        pytest.param(BEFORE, "interrupted True", id="interrupt before the first line"),
    ],
)
def test_a_process_ends_well_after_an_exit_or_an_interrupt(program: str, output: str) -> None:
    """An interrupt is no lack of memory: that would fail a collective on all ranks."""
    command = [sys.executable, "-X", "dev", "-c", ARENA + program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{output}\n", "")
