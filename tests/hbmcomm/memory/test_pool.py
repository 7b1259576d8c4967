"""The C core's heap as Python sees it. Its model, threads and forks: tests/native/memory."""

import pytest

from hbmcomm.memory import kernel
from hbmcomm.memory.pool import Heap, Usage

STEP, STEPS = 4096, 24


def test_extents_holds_and_steps_are_those_of_the_core() -> None:
    address = kernel.map_private(STEPS * STEP)
    heap = Heap(address, STEPS * STEP, STEP)
    assert [heap.take(1000, 64), heap.take(STEP, STEP)] == [0, STEP]
    assert heap.missing(10, 3 * STEP) == (0, 3 * STEP)
    heap.populated(0, 2 * STEP)
    assert heap.missing(10, 3 * STEP) == (2 * STEP, 3 * STEP)
    assert heap.missing(10, 2 * STEP) is None
    number = heap.hold(0, 64)
    assert heap.give(0) and not heap.give(0)
    assert heap.usage == Usage(STEPS * STEP, STEP, 1024, 2 * STEP, 0, heap.usage.idle_limit, 2)
    heap.release(number)
    with pytest.raises(OSError):
        heap.release(number)
    heap.limit_idle(STEP)
    assert heap.usage == Usage(STEPS * STEP, STEP, 0, 2 * STEP, STEP, STEP, 1)
    kernel.unmap(address, STEPS * STEP)


def test_what_does_not_fit_takes_nothing() -> None:
    heap = Heap(0x10000, 10 * STEP, STEP)
    assert heap.take(10 * STEP + 1, 1) is None
    assert heap.take(2**64 - 1, 1) is None
    assert heap.usage.extents == 0
    with pytest.raises(OSError):
        heap.take(100, 48)
    with pytest.raises(OSError):
        Heap(0x10000, 100, STEP)
