"""What an arena leaves serves again when no rank can touch it any more; threads play the ranks."""

import ctypes
import gc
import os
from pathlib import Path

import numpy as np
import pytest

from hbmcomm.errors import HbmcommError
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.pool import ffi, lib
from tests.hbmcomm.memory.cast import CONTROL, Cast

pytestmark = pytest.mark.alone

MIB = 2**20
MANY = 100


def offset(arena: Arena, rank: int) -> int:
    place = arena.ranks[rank]
    return place.control - place.ordinary


def test_a_control_block_serves_again_when_all_ranks_have_left() -> None:
    ranks = Cast(3)
    first = ranks.arenas()
    before = offset(first[0], 0)
    ctypes.memset(first[0].ranks[0].control, 7, CONTROL)
    first[0].retire()
    first[0].retire()
    first[1].retire()
    second = ranks.arenas()  # rank 2 may still look at the first
    assert offset(second[0], 0) != before
    first[2].retire()
    third = ranks.arenas()
    assert [offset(arena, rank) for rank, arena in enumerate(third)] == [before] * 3
    for arena in third:
        assert ctypes.string_at(arena.ranks[0].control, CONTROL) == bytes(CONTROL)


def test_many_arenas_take_a_control_block_each_and_give_it_back() -> None:
    ranks = Cast(2)
    keeper = ranks.arenas()
    usage = ffi.new("hbm_heap_usage *")
    lib.hbm_heap_use(keeper[0].ordinary_heap, usage)
    before = usage.populated
    many = [ranks.arenas() for _ in range(MANY)]
    lib.hbm_heap_use(keeper[0].ordinary_heap, usage)
    assert usage.populated - before <= MANY * (CONTROL + 8192) + 2 * MIB
    assert len({arenas[0].ranks[0].control for arenas in many}) == MANY
    for arena in (arena for arenas in many for arena in arenas):
        arena.retire()
    keeper[0].retire()  # looks
    lib.hbm_heap_use(keeper[0].ordinary_heap, usage)
    assert usage.taken <= 2 * (CONTROL + 8192)


def test_an_arena_that_is_dropped_has_left() -> None:
    ranks = Cast(2)
    first, _keeper = ranks.arenas(), ranks.arenas()
    before, kept = offset(first[0], 0), first.pop()
    first.clear()
    gc.collect()
    assert offset(ranks.arenas()[0], 0) != before
    del kept
    gc.collect()
    assert offset(ranks.arenas()[0], 0) == before


def test_all_that_a_leaving_rank_names_waits_for_the_other_ranks() -> None:
    ranks = Cast(2)
    first, keeper = ranks.arenas(), ranks.arenas()
    heap = first[0].ordinary_heap
    staging = lib.hbm_heap_reserve(heap, MIB, 4096)
    first[0].retire([staging])
    keeper[0].retire()  # looks
    assert lib.hbm_heap_size(heap, staging) == MIB
    first[1].retire()
    keeper[1].retire()
    ranks.arenas()
    assert lib.hbm_heap_size(heap, staging) == 0


def test_a_control_block_waits_for_a_test_of_the_caller_too() -> None:
    ranks = Cast(2)
    first, keeper = ranks.arenas(), ranks.arenas()
    before, done = offset(first[0], 0), [False]
    first[0].retire(test=lambda: done[0])
    first[1].retire()
    assert offset(ranks.arenas()[0], 0) != before
    done[0] = True
    keeper[0].retire()  # looks
    assert offset(ranks.arenas()[0], 0) == before


def test_a_rank_that_died_has_left() -> None:
    ranks = Cast(2)
    first, keeper = ranks.arenas(), ranks.arenas()
    before = offset(first[0], 0)
    first[0].retire()
    assert offset(ranks.arenas()[0], 0) != before
    del first, keeper
    ranks.segments[1] = type(ranks.segments[1])()  # all that the second process had is gone
    gc.collect()
    assert offset(ranks.arenas()[0], 0) == before


def test_nothing_waits_once_the_last_user_has_gone() -> None:
    ranks = Cast(2)
    first = ranks.arenas()
    first[0].retire()  # the other never leaves
    first.pop(0)
    gc.collect()
    maps = Path("/proc/self/maps").read_text()
    assert maps.count("memfd:hbmcomm") == len(
        {line for line in maps.splitlines() if "memfd:hbmcomm" in line}
    )
    first.clear()
    gc.collect()
    assert "memfd:hbmcomm" not in Path("/proc/self/maps").read_text()


def test_kept_memory_is_used_again_once_all_have_left() -> None:
    ranks = Cast(2)
    first, second = ranks.arenas(), ranks.arenas()
    array = np.asarray(first[0].allocate(3 * MIB))
    address = array.ctypes.data
    for _ in range(2):
        first[0].keep(address + MIB, MIB)
    first[0].keep(address, 100)
    first[0].keep(address, 0)
    del array
    first[0].retire()
    later = np.asarray(second[0].allocate(3 * MIB))
    assert abs(later.ctypes.data - address) >= 3 * MIB
    first[1].retire()
    second[0].allocate(1)
    assert np.asarray(second[0].allocate(2 * MIB)).ctypes.data == address
    assert second[0].pool.heap.usage.parked == 0
    del first, second, later
    gc.collect()
    assert "memfd:hbmcomm" not in Path("/proc/self/maps").read_text()


def test_a_child_of_a_fork_neither_allocates_nor_leaves() -> None:
    ranks = Cast(2)
    arenas = ranks.arenas()
    own = arenas[0]
    array = np.asarray(own.allocate(1000))
    array[:] = 5
    before = offset(own, 0)
    child = os.fork()
    if not child:
        try:
            own.allocate(1000)
        except HbmcommError:
            own.retire()
            arenas[1].retire()
            del arenas, own, array
            gc.collect()
            os._exit(0)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 5).all() and lib.hbm_is_claimed(own.ranks[0].claim, own.boot)
    assert np.asarray(own.allocate(1000)).ctypes.data != array.ctypes.data
    own.retire()
    assert offset(ranks.arenas()[0], 0) != before, "rank 1 counts as gone, by the child's word"


def test_a_child_of_a_fork_can_have_arenas_of_its_own() -> None:
    ranks = Cast(1)
    (own,) = ranks.arenas()
    kept = np.asarray(own.allocate(1000))
    child = os.fork()
    if not child:
        (mine,) = ranks.arenas()
        array = np.asarray(mine.allocate(1000))
        array[:] = 9
        apart = mine.ranks[0].arrays != own.ranks[0].arrays
        os._exit(0 if apart and mine.ranks[0].pid == os.getpid() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert not (kept == 9).any()
