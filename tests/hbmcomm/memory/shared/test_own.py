"""A process's own memory grows as needed, within what the machine has, and goes back when idle."""

from __future__ import annotations

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

from hbmcomm.errors import HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory.policy import capacity, kernel
from hbmcomm.memory.policy.kinds import Kind, resolve
from hbmcomm.memory.shared import own, segment
from hbmcomm.memory.shared.heap import STEP, lib
from hbmcomm.memory.shared.own import Ordinary, Own
from hbmcomm.memory.topology import procfs

pytestmark = pytest.mark.alone

MIB = 2**20
GIB = 2**30


@pytest.fixture
def ground() -> Own:
    return Own(resolve("regular"), segment.make("memfd", 4 * GIB))


def had(ground: Own) -> int:
    """Bytes that the file has."""
    return os.fstat(ground.segment.descriptor).st_blocks * 512


def array(ground: Own, nbytes: int) -> np.ndarray:
    return np.asarray(ground.allocate(ground.kind, nbytes))


def test_memory_comes_in_steps_as_it_is_needed(ground: Own) -> None:
    assert had(ground) == 0
    small, large = array(ground, 100), array(ground, 5 * MIB)
    assert had(ground) == 4 * STEP  # 0 for the small one, from 1 on, aligned, for the large one
    assert small.ctypes.data % 64 == 0 and large.ctypes.data % segment.HUGE_PAGE == 0
    assert not large.any()


def test_memory_of_a_dropped_array_serves_again(ground: Own) -> None:
    first = array(ground, 5 * MIB)
    address = first.ctypes.data
    kept = array(ground, 100)
    del first
    assert array(ground, 4 * MIB).ctypes.data == address
    assert ground.holds(kept.ctypes.data)


def test_memory_lives_as_long_as_an_array_in_it() -> None:
    ground = Own(resolve("regular"), segment.make("memfd", 64 * MIB))
    kept = array(ground, 1000)
    kept[:] = 5
    region = rf"^{ground.address:x}-"
    del ground
    assert (kept == 5).all()
    assert re.search(region, Path("/proc/self/maps").read_text(), re.M)
    del kept
    assert not re.search(region, Path("/proc/self/maps").read_text(), re.M)


def test_idle_memory_beyond_a_keep_goes_back_to_the_system(ground: Own) -> None:
    ground.limit(20 * MIB)
    ground.limit(30 * MIB)  # the lowest counts
    low, high = array(ground, 40 * MIB), array(ground, 40 * MIB)
    high[:] = 7
    assert had(ground) == 80 * MIB
    resident = rss()
    del low
    assert had(ground) == 60 * MIB
    assert resident - rss() >= 19 * MIB
    assert (high == 7).all()
    del high
    assert had(ground) == ground.heap.usage.idle == 20 * MIB
    again = array(ground, 60 * MIB)
    assert had(ground) == 60 * MIB
    assert not again[20 * MIB :].any()


def rss() -> int:
    found = re.search(r"RssShmem:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def test_a_keep_of_none_gives_all_back(ground: Own) -> None:
    ground.limit(0)
    held = [array(ground, size) for size in (100, 3 * MIB, 10 * MIB)]
    del held
    assert had(ground) == 0


def test_memory_that_the_kernel_will_not_take_back_is_kept(ground: Own) -> None:
    ground.limit(0)
    locked = array(ground, 2 * MIB)
    if ctypes.CDLL(None).mlock(ctypes.c_void_p(ground.address), ctypes.c_size_t(STEP)) != 0:
        pytest.skip("no memory may be locked here")
    del locked
    assert had(ground) == ground.heap.usage.idle == STEP
    again = array(ground, MIB)
    again[:] = 1
    assert had(ground) == STEP


def test_what_its_nodes_have_not_is_an_error_and_takes_nothing(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"regular: asked for 100 MiB .* 3 MiB are free"):
        array(ground, 100 * MIB)
    assert ground.heap.usage.taken == had(ground) == 0
    assert array(ground, MIB).nbytes == MIB


def test_what_was_had_of_memory_that_ran_short_goes_back(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = array(ground, 100)
    kept[:] = 3
    left = iter([200 * MIB, 20 * MIB])
    with monkeypatch.context() as patch:
        patch.setattr(capacity, "free_bytes", lambda nodes: next(left))
        with pytest.raises(OutOfMemory, match="then others took the rest"):
            array(ground, 100 * MIB)
    assert next(left, None) is None
    assert had(ground) == STEP and (kept == 3).all()
    assert not array(ground, 100 * MIB).any()


def test_more_than_was_reserved_is_an_error(ground: Own) -> None:
    with pytest.raises(OutOfMemory, match=r"no 5,368,709,120 bytes in one piece"):
        array(ground, 5 * GIB)


def test_memory_that_goes_while_it_is_populated_is_an_error(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_arguments: Any) -> None:
        raise OSError(14, "Bad address")

    monkeypatch.setattr(kernel, "populate", refuse)
    with pytest.raises(OutOfMemory, match="refused"):
        array(ground, 10 * MIB)
    assert ground.heap.usage.taken == 0


def test_a_full_dev_shm_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    ground = Own(resolve("regular"), segment.make("shm", 64 * MIB))
    ground.hide()
    assert ground.hidden
    monkeypatch.setattr(segment, "room_for", lambda way: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"/dev/shm has 3,145,728 left; .*--shm-size"):
        array(ground, 4 * MIB)
    assert array(ground, MIB).nbytes == MIB


def test_of_two_threads_at_the_limit_neither_zeroes_what_the_other_has(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small arrays of both share steps; every other time there is no memory for a step."""
    populate, turns = kernel.populate, iter(range(10**9))

    def scarce(address: int, nbytes: int) -> None:
        populate(address, nbytes)
        time.sleep(0.0005)
        if next(turns) % 2:
            raise OSError(14, "Bad address")

    monkeypatch.setattr(kernel, "populate", scarce)
    ground.limit(0)
    refused = [0, 0]

    def work(me: int) -> None:
        mine: list[np.ndarray] = []
        end = time.monotonic() + 0.7
        while time.monotonic() < end:
            try:
                mine.append(array(ground, 700_000))
            except OutOfMemory:
                refused[me] += 1
            else:
                mine[-1][:] = me + 1
            if len(mine) > 4:
                del mine[:3]
            assert all((each == me + 1).all() for each in mine), "zeroed by the other thread"

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))
    assert all(refused)
    gc.collect()
    assert ground.heap.usage.taken == had(ground) == 0


def test_a_finalizer_that_allocates_while_memory_is_populated_is_served(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    populate, made = kernel.populate, []

    class Wish:
        def __del__(self) -> None:
            made.append(array(ground, 100))
            made[-1][:] = 9

    wish = [Wish()]

    def collecting(address: int, nbytes: int) -> None:
        populate(address, nbytes)
        if wish:
            wish.clear()  # Python may do this at any step
            raise OSError(14, "Bad address")  # and this allocation fails, the other does not

    monkeypatch.setattr(kernel, "populate", collecting)
    with pytest.raises(OutOfMemory):
        array(ground, 3 * STEP + 100)
    assert len(made) == 1 and (made[0] == 9).all()


def test_an_interrupted_allocation_takes_nothing(
    ground: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(kernel, "populate", interrupt)
        with pytest.raises(KeyboardInterrupt):
            array(ground, MIB)
    assert ground.heap.usage.taken == ground.heap.usage.populated == 0
    assert array(ground, MIB).nbytes == MIB


def test_a_child_of_a_fork_gets_no_memory_and_gives_none_back(ground: Own) -> None:
    kept = array(ground, 1000)
    kept[:] = 5
    child = os.fork()
    if not child:
        try:
            array(ground, 1000)
        except HbmcommError as error:
            right = "fork of a rank" in str(error)
            del kept
            gc.collect()
            os._exit(0 if right else 2)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert ground.heap.usage.taken == 1024
    fresh = array(ground, 1000)
    fresh[:] = 6
    assert (kept == 5).all()


def test_a_kind_is_bound_before_it_is_populated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = segment.make("memfd", 64 * MIB)
    calls: list[tuple[int, int, str, tuple[int, ...]]] = []
    monkeypatch.setattr(kernel, "bind", lambda *arguments: calls.append(arguments))
    own.bind(Kind("hbw", (0,), "bind", True, ""), made)
    assert calls == [(made.address, 64 * MIB, "bind", (0,))]
    own.bind(Kind("regular", (0,), "default", False, ""), made)
    assert len(calls) == 1


def test_where_binding_is_refused_a_kind_cannot_be_had_but_ordinary_memory_can(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "bind", refuse)
    monkeypatch.setattr(own, "usable_nodes", lambda: (0, 1))
    kind = Kind("hbw", (1,), "bind", False, "")
    with pytest.raises(KindUnavailable, match="refused"):
        own.bind(kind, segment.make("memfd", 64 * MIB))
    monkeypatch.setattr(own, "ordinary_kind", lambda: Kind("regular", (0,), "bind", False, ""))
    assert Ordinary(segment.make("memfd", 64 * MIB)).kind.policy == "default"


def test_ordinary_memory_has_a_claim_for_as_long_as_it_lives() -> None:
    boot = procfs.boot(Path("/proc"))
    ground = Ordinary(segment.make("memfd", 64 * MIB))
    seen = segment.find(ground.segment.notice)
    assert ground.claim == ground.address
    assert lib.hbm_is_taken(seen.address, boot)
    threads = threading.active_count()
    del ground
    assert not lib.hbm_is_taken(seen.address, boot)
    assert threading.active_count() == threads


def test_without_claims_there_is_no_ordinary_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Without:
        def __getattr__(self, name: str) -> Any:
            return (lambda *_: own.ffi.NULL) if name == "hbm_take" else getattr(lib, name)

    monkeypatch.setattr(own, "lib", Without())
    with pytest.raises(OSError, match="no claim"):
        Ordinary(segment.make("memfd", 64 * MIB))
