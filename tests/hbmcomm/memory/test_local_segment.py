"""A process's own memory grows as needed, within what the machine has, and goes back when idle."""

import ctypes
import gc
import os
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hbmcomm.errors import KindUnavailable, OutOfMemory
from hbmcomm.memory import capacity, kernel, local_segment, procfs, segment
from hbmcomm.memory.kinds import Kind, resolve
from hbmcomm.memory.local_segment import LocalSegment, OrdinarySegment
from hbmcomm.memory.pool import STEP, lib

pytestmark = pytest.mark.alone

MIB = 2**20
GIB = 2**30


@pytest.fixture
def pool() -> LocalSegment:
    return LocalSegment(resolve("regular"), segment.create("memfd", 4 * GIB))


def had(pool: LocalSegment) -> int:
    """Bytes that the file has."""
    return os.fstat(pool.segment.descriptor).st_blocks * 512


def array(pool: LocalSegment, nbytes: int) -> np.ndarray:
    return np.asarray(pool.allocate(pool.kind, nbytes))


def test_memory_comes_in_steps_as_it_is_needed(pool: LocalSegment) -> None:
    assert had(pool) == 0
    small, large = array(pool, 100), array(pool, 5 * MIB)
    assert had(pool) == 4 * STEP  # 0 for the small one, from 1 on, aligned, for the large one
    assert small.ctypes.data % 64 == 0 and large.ctypes.data % segment.HUGE_PAGE == 0
    assert not large.any()


def test_memory_of_a_dropped_array_serves_again(pool: LocalSegment) -> None:
    first = array(pool, 5 * MIB)
    address = first.ctypes.data
    kept = array(pool, 100)
    del first
    assert array(pool, 4 * MIB).ctypes.data == address
    assert pool.holds(kept.ctypes.data)


def test_idle_memory_beyond_a_keep_goes_back_to_the_system(pool: LocalSegment) -> None:
    pool.limit_idle(20 * MIB)
    pool.limit_idle(30 * MIB)  # the lowest counts
    low, high = array(pool, 40 * MIB), array(pool, 40 * MIB)
    high[:] = 7
    assert had(pool) == 80 * MIB
    resident = rss()
    del low
    assert had(pool) == 60 * MIB
    assert resident - rss() >= 19 * MIB
    assert (high == 7).all()
    del high
    assert had(pool) == pool.heap.usage.idle == 20 * MIB
    again = array(pool, 60 * MIB)
    assert had(pool) == 60 * MIB
    assert not again[20 * MIB :].any()


def rss() -> int:
    match = re.search(r"RssShmem:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert match is not None
    return int(match[1]) * 1024


def test_memory_that_the_kernel_will_not_take_back_is_kept(pool: LocalSegment) -> None:
    pool.limit_idle(0)
    locked = array(pool, 2 * MIB)
    if ctypes.CDLL(None).mlock(ctypes.c_void_p(pool.address), ctypes.c_size_t(STEP)) != 0:
        pytest.skip("no memory may be locked here")
    del locked
    assert had(pool) == pool.heap.usage.idle == STEP
    again = array(pool, MIB)
    again[:] = 1
    assert had(pool) == STEP


def test_what_its_nodes_have_not_is_an_error_and_takes_nothing(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"regular: asked for 100 MiB .* 3 MiB are free"):
        array(pool, 100 * MIB)
    assert pool.heap.usage.taken == had(pool) == 0
    assert array(pool, MIB).nbytes == MIB


def test_what_was_had_of_memory_that_ran_short_goes_back(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = array(pool, 100)
    kept[:] = 3
    left = iter([200 * MIB, 20 * MIB])
    with monkeypatch.context() as patch:
        patch.setattr(capacity, "free_bytes", lambda nodes: next(left))
        with pytest.raises(OutOfMemory, match="then others took the rest"):
            array(pool, 100 * MIB)
    assert next(left, None) is None
    assert had(pool) == STEP and (kept == 3).all()
    assert not array(pool, 100 * MIB).any()


def test_memory_that_goes_while_it_is_populated_is_an_error(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise OSError(14, "Bad address")

    monkeypatch.setattr(kernel, "populate", refuse)
    with pytest.raises(OutOfMemory, match="refused"):
        array(pool, 10 * MIB)
    assert pool.heap.usage.taken == 0


def test_a_full_dev_shm_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = LocalSegment(resolve("regular"), segment.create("shm", 64 * MIB))
    pool.unlink()
    assert pool.unlinked
    monkeypatch.setattr(segment, "free_bytes", lambda backing: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"/dev/shm has 3,145,728 left; .*--shm-size"):
        array(pool, 4 * MIB)
    assert array(pool, MIB).nbytes == MIB


def test_of_two_threads_at_the_limit_neither_zeroes_what_the_other_has(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small arrays of both share steps; every other time there is no memory for a step."""
    populate, turns = kernel.populate, iter(range(10**9))

    def scarce(address: int, nbytes: int) -> None:
        populate(address, nbytes)
        time.sleep(0.0005)
        if next(turns) % 2:
            raise OSError(14, "Bad address")

    monkeypatch.setattr(kernel, "populate", scarce)
    pool.limit_idle(0)
    refused = [0, 0]

    def work(me: int) -> None:
        mine: list[np.ndarray] = []
        end = time.monotonic() + 0.7
        while time.monotonic() < end:
            try:
                mine.append(array(pool, 700_000))
            except OutOfMemory:
                refused[me] += 1
            else:
                mine[-1][:] = me + 1
            if len(mine) > 4:
                del mine[:3]
            assert all((kept == me + 1).all() for kept in mine), "zeroed by the other thread"

    with ThreadPoolExecutor(2) as executor:
        list(executor.map(work, range(2)))
    assert all(refused)
    gc.collect()
    assert pool.heap.usage.taken == had(pool) == 0


def test_a_finalizer_that_allocates_while_memory_is_populated_is_served(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    populate, made = kernel.populate, []

    class Wish:
        def __del__(self) -> None:
            made.append(array(pool, 100))
            made[-1][:] = 9

    wish = [Wish()]

    def collecting(address: int, nbytes: int) -> None:
        populate(address, nbytes)
        if wish:
            wish.clear()  # Python may do this at any step
            raise OSError(14, "Bad address")  # and this allocation fails, the other does not

    monkeypatch.setattr(kernel, "populate", collecting)
    with pytest.raises(OutOfMemory):
        array(pool, 3 * STEP + 100)
    assert len(made) == 1 and (made[0] == 9).all()


def test_an_interrupted_allocation_takes_nothing(
    pool: LocalSegment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "populate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            array(pool, MIB)
    assert pool.heap.usage.taken == pool.heap.usage.populated == 0
    assert array(pool, MIB).nbytes == MIB


def test_a_kind_is_bound_before_it_is_populated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = segment.create("memfd", 64 * MIB)
    calls: list[tuple[int, int, str, tuple[int, ...]]] = []
    monkeypatch.setattr(kernel, "bind", lambda *arguments: calls.append(arguments))
    local_segment.bind(Kind("hbw", (0,), "bind", True, ""), made)
    assert calls == [(made.address, 64 * MIB, "bind", (0,))]
    local_segment.bind(Kind("regular", (0,), "default", False, ""), made)
    assert len(calls) == 1


def test_where_binding_is_refused_a_kind_cannot_be_had_but_ordinary_memory_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "bind", refuse)
    monkeypatch.setattr(local_segment, "usable_nodes", lambda: (0, 1))
    kind = Kind("hbw", (1,), "bind", False, "")
    with pytest.raises(KindUnavailable, match="refused"):
        local_segment.bind(kind, segment.create("memfd", 64 * MIB))
    monkeypatch.setattr(
        local_segment, "ordinary_kind", lambda: Kind("regular", (0,), "bind", False, "")
    )
    assert OrdinarySegment(segment.create("memfd", 64 * MIB)).kind.policy == "default"


def test_ordinary_memory_has_a_claim_for_as_long_as_it_lives() -> None:
    boot = procfs.boot(Path("/proc"))
    pool = OrdinarySegment(segment.create("memfd", 64 * MIB))
    seen = segment.attach(pool.segment.locator)
    assert pool.claim == pool.address
    assert lib.hbm_is_claimed(seen.address, boot)
    threads = threading.active_count()
    del pool
    assert not lib.hbm_is_claimed(seen.address, boot)
    assert threading.active_count() == threads


def test_control_blocks_of_many_communicators_wait_for_no_huge_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python's exchange and MPI take 0.1 ms; a huge page takes the kernel 1 to 12 ms."""
    tried = []
    monkeypatch.setattr(segment, "populate", lambda _at, nbytes, huge: tried.append((nbytes, huge)))
    pool = OrdinarySegment(segment.create("memfd", 64 * MIB))
    pool.take(STEP, kernel.PAGE)
    pool.take(2 * STEP, kernel.PAGE)
    assert tried == [(STEP, True), (STEP, False), (2 * STEP, True)]


def test_without_claims_there_is_no_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        def __getattr__(self, name: str) -> Any:
            if name == "hbm_acquire_claim":
                return lambda *_: local_segment.ffi.NULL
            return getattr(lib, name)

    monkeypatch.setattr(local_segment, "lib", Without())
    with pytest.raises(OSError, match="no claim"):
        OrdinarySegment(segment.create("memfd", 64 * MIB))
