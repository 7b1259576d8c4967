"""An arena is had by all ranks or by none, and grows until its nodes have no more.

Threads play the ranks here: they talk through a list, and share memory as processes would.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from hbmcomm.errors import ArenaUnavailable, HbmcommError, OutOfMemory
from hbmcomm.memory import arena, capacity, kernel
from hbmcomm.memory import segment as shared
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.kinds import Kind, resolve

pytestmark = pytest.mark.alone

MIB = 2**20


def with_ranks(ranks: int, part: Callable[[arena.Allgather, int], Any]) -> list[Any]:
    """What each rank's part returns, or the error that it raises."""
    values: list[Any] = [None] * ranks
    meeting = threading.Barrier(ranks, timeout=20)

    def play(rank: int) -> Any:
        def allgather(value: Any) -> Sequence[Any]:
            values[rank] = value
            meeting.wait()
            told = list(values)
            meeting.wait()
            return told

        try:
            return part(allgather, rank)
        except HbmcommError as error:
            return error

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(play, range(ranks)))


def make(allgather: arena.Allgather, rank: int) -> Arena:
    return arena.make(allgather, rank, resolve("regular"), MIB)


def test_every_rank_finds_every_other_rank_s_arrays() -> None:
    arenas = with_ranks(3, make)
    for owner, own in enumerate(arenas):
        block = own.allocate(10_000)
        np.asarray(block)[:] = owner
        offset = block.address - own.addresses[owner]
        assert offset >= MIB
        for other in arenas:
            holder = type("Holder", (), {})()
            data = (other.addresses[owner] + offset, False)
            form = {"version": 3, "shape": (10_000,), "typestr": "|u1", "data": data}
            holder.__array_interface__ = form
            assert (np.asarray(holder) == owner).all()


def test_an_array_s_memory_serves_again_once_it_is_dropped() -> None:
    (own,) = with_ranks(1, make)
    first = own.allocate(5 * MIB)
    address = first.address
    assert address % shared.HUGE_PAGE == 0
    second = own.allocate(100)
    del first
    assert own.allocate(4 * MIB).address == address
    assert own.holds(second)


def test_memory_lives_as_long_as_an_array_in_it() -> None:
    (own,) = with_ranks(1, make)
    array = np.asarray(own.allocate(1000))
    array[:] = 5
    del own
    assert (array == 5).all()


def test_what_its_nodes_have_not_is_an_error_and_takes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (own,) = with_ranks(1, make)
    monkeypatch.setattr(capacity, "free_bytes", lambda nodes: 3 * MIB)
    with pytest.raises(OutOfMemory, match=r"asked for .* 3 MiB are free"):
        own.allocate(100 * MIB)
    assert own.allocate(MIB).nbytes == MIB


def test_memory_that_goes_while_it_is_populated_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (own,) = with_ranks(1, make)

    def refuse(*_arguments: Any) -> None:
        raise OSError(14, "Bad address")

    monkeypatch.setattr(kernel, "populate", refuse)
    with pytest.raises(OutOfMemory, match="refused"):
        own.allocate(10 * MIB)


def test_what_was_had_of_memory_that_ran_short_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    (own,) = with_ranks(1, make)
    held = os.fstat(own.lock).st_blocks
    left = iter([200 * MIB, 20 * MIB])
    with monkeypatch.context() as patch:
        patch.setattr(capacity, "free_bytes", lambda nodes: next(left))
        with pytest.raises(OutOfMemory, match="then others took the rest"):
            own.allocate(100 * MIB)
    assert next(left, None) is None
    assert os.fstat(own.lock).st_blocks == held
    array = np.asarray(own.allocate(100 * MIB))
    assert os.fstat(own.lock).st_blocks * 512 >= 100 * MIB
    assert not array.any()


def test_one_rank_without_memory_is_an_error_on_every_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    make_one = arena._arena

    def short_on_one(kind: Kind, rank: int, *others: Any) -> Arena:
        if rank == 1:
            raise OutOfMemory("nothing left")
        return make_one(kind, rank, *others)

    monkeypatch.setattr(arena, "_arena", short_on_one)
    found = with_ranks(3, make)
    assert [type(each) for each in found] == [OutOfMemory] * 3
    assert {str(each) for each in found} == {"rank 1: nothing left"}


def test_ranks_without_each_other_s_proc_share_through_dev_shm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find = shared.find

    def blind(notice: shared.Notice) -> shared.Segment:
        if notice.path.startswith("/proc"):
            raise FileNotFoundError(notice.path)
        return find(notice)

    monkeypatch.setattr(shared, "find", blind)
    before = set(shared.SHM.glob("hbmcomm.*"))
    arenas = with_ranks(2, make)
    assert set(shared.SHM.glob("hbmcomm.*")) == before
    assert all(isinstance(each, Arena) and each.allocate(MIB) for each in arenas)


def test_a_full_dev_shm_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "WAYS", ("shm",))
    monkeypatch.setattr(shared, "room_for", lambda way: 1000)
    found = with_ranks(2, make)
    assert all(isinstance(each, OutOfMemory) and "--shm-size" in str(each) for each in found)


def test_ranks_that_can_share_nothing_are_told_who_cannot_see_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def blind(notice: shared.Notice) -> shared.Segment:
        raise PermissionError(13, "Permission denied", notice.path)

    monkeypatch.setattr(shared, "find", blind)
    found = with_ranks(2, make)
    assert all(isinstance(each, ArenaUnavailable) for each in found)
    assert "rank 0 cannot map the memory of rank 1" in str(found[0])
    assert str(found[0]) == str(found[1])


def test_one_rank_without_locks_leaves_no_rank_with_an_arena(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse_one(descriptor: int, operation: int, length: int, start: int) -> None:
        if start == 1:
            raise OSError(37, "No locks available")

    monkeypatch.setattr(arena.fcntl, "lockf", refuse_one)
    found = with_ranks(3, make)
    assert [type(each) for each in found] == [ArenaUnavailable] * 3
    assert all("rank 1: memfd: no lock" in str(each) for each in found)
