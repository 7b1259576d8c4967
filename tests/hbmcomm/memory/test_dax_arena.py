"""Ranks share a device, alone and without a trace of earlier users; a file in memory plays it.

Threads play the ranks. On a real device see tests/experiments/emulation/in_guest.
"""

import ctypes
import errno
import gc
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hbmcomm import source
from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import dax_arena, dax_file, dax_mapping, owner_table, segment
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.dax_file import DaxFile
from tests.hbmcomm.memory.cast import CONTROL, Cast

pytestmark = pytest.mark.alone

MIB = 2**20
BYTES = 64 * MIB


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """64 MiB, full of what others left; it has no name that could be left behind."""
    descriptor = os.memfd_create("hbmcomm-test-device")
    os.write(descriptor, b"\xa5" * BYTES)
    fd_path = f"/proc/{os.getpid()}/fd/{descriptor}"
    device = DaxFile(fd_path, "stand-in", (0, 0), BYTES, 2 * MIB, 0)
    monkeypatch.setattr(dax_file, "inspect", lambda path: device)
    yield fd_path
    os.close(descriptor)


def arena(rank: Any, path: str, **more: Any) -> Arena:
    return dax_arena.create_arena(
        *(rank.allgather, rank.number, rank.size, path, CONTROL),
        segments=rank.segments,
        mappings=rank.mappings,
        **more,
    )[0]


def made(ranks: Any, path: str, **more: Any) -> list[Any]:
    return ranks(lambda rank: arena(rank, path, **more))


def check_shared(arenas: list[Arena]) -> None:
    for owner, own in enumerate(arenas):
        block = own.allocate(10_000)
        array = np.asarray(block)
        assert own.holds(block) and source(array) == "arena" and not array.any()
        array[:] = owner + 1
        offset = block.address - own.ranks[owner].arrays
        for other in arenas:
            place = other.ranks[owner]
            assert ctypes.string_at(place.arrays + offset, 10_000) == bytes([owner + 1]) * 10_000
            assert ctypes.string_at(place.control, CONTROL) == bytes(CONTROL)
            assert place.pid == os.getpid()


def test_arrays_are_on_the_device_and_control_blocks_are_not(path: str) -> None:
    ranks = Cast(3)
    arenas = made(ranks, path)
    assert ranks.exchanges == 5
    check_shared(arenas)
    for own in arenas:
        assert own.kind.name == "dax"
        slices = {place.arrays for place in own.ranks}
        assert len(slices) == 3 and own.ranks[0].array_bytes == 20 * MIB
        low, high = min(slices), max(slices) + 20 * MIB
        assert not any(low <= place.control < high for place in own.ranks)
        assert not any(low <= place.ordinary < high for place in own.ranks)
    with arenas[0].numpy_memory():
        assert arenas[0].holds(type("Piece", (), {"address": np.ones(MIB).ctypes.data}))


def test_other_communicators_of_the_ranks_share_the_device(path: str) -> None:
    ranks = Cast(2)
    first = made(ranks, path)
    array = np.asarray(first[0].allocate(MIB))
    before = ranks.exchanges
    second = made(ranks, path)
    assert ranks.exchanges - before == 3
    assert second[0].ranks[1].arrays == first[0].ranks[1].arrays
    assert second[0].holds(type("Piece", (), {"address": array.ctypes.data}))
    some = Cast(1)
    some.segments, some.mappings = ranks.segments[1:], ranks.mappings[1:]
    (alone,) = made(some, path)
    assert alone.ranks[0].arrays == first[1].ranks[1].arrays


@pytest.fixture
def no_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rank can map what another one offers beside the device."""

    def blind(locator: segment.Locator) -> segment.Segment:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(segment, "attach", blind)


@pytest.mark.usefixtures("no_segments")
def test_where_the_device_is_all_that_is_shared_control_blocks_are_there(path: str) -> None:
    ranks = Cast(3)
    arenas = made(ranks, path)
    check_shared(arenas)
    for own in arenas:
        for place in own.ranks:
            assert (place.ordinary, place.ordinary_bytes) == (place.arrays, place.array_bytes)
            assert place.arrays <= place.control < place.arrays + 20 * MIB
        assert own.heap == own.ordinary_heap
        table = own.ranks[0].arrays - owner_table.TABLE_BYTES
        assert [place.claim for place in own.ranks] == [
            owner_table.word_address(table, line) for line in range(3)
        ]


@pytest.mark.usefixtures("no_segments")
def test_control_blocks_on_the_device_serve_again_when_all_have_left(path: str) -> None:
    ranks = Cast(2)
    first, _keeper = made(ranks, path), made(ranks, path)
    before = first[0].ranks[0].control
    first[0].retire()
    assert made(ranks, path)[0].ranks[0].control != before
    first[1].retire()
    assert made(ranks, path)[0].ranks[0].control == before


@pytest.mark.usefixtures("no_segments")
def test_control_blocks_do_not_fill_the_device(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.CONTROL", 7 * MIB)
    ranks = Cast(2)
    _keeper = made(ranks, path)
    for _ in range(8):  # of which three would fit if they stayed
        assert all(isinstance(outcome, Arena) for outcome in made(ranks, path))
        gc.collect()


def test_some_ranks_of_a_job_cannot_take_what_others_have(path: str) -> None:
    pair, trio = Cast(2), Cast(3)
    kept = made(pair, path)
    trio.segments[:2], trio.mappings[:2] = pair.segments, pair.mappings
    failures = made(trio, path)
    assert [type(failure) for failure in failures] == [KindUnavailable] * 3
    assert "another communicator of this job" in str(failures[2])
    assert len(kept) == 2


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"nbytes": 8 * MIB}, OutOfMemory, "has 8,388,608 bytes: too few for 3 ranks"),
        ({"path": "/dev/null"}, KindUnavailable, "mapping its 67,108,864 bytes was refused"),
    ],
)
def test_a_device_that_does_not_serve_is_the_same_error_on_all(
    path: str,
    change: dict[str, Any],
    error: type[HbmcommError],
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = {"path": path, "nbytes": BYTES} | change
    device = DaxFile(values["path"], "x", (0, 0), values["nbytes"], 2 * MIB, 0)
    monkeypatch.setattr(dax_file, "inspect", lambda path: device)
    failures = made(Cast(3), path)
    assert [type(failure) for failure in failures] == [error] * 3
    assert text in str(failures[0]) and len({str(failure) for failure in failures}) == 1


@pytest.mark.parametrize("step", ["inspect", "map_device", "claim_first", "claim_with"])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyError("x")], ids=repr)
def test_what_fails_on_one_rank_fails_on_all(
    path: str, step: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Cast(3)
    where = {"inspect": dax_file, "map_device": dax_mapping}.get(step, dax_mapping.DeviceMapping)

    def refuse(*_arguments: Any) -> Any:
        raise type(error)(*error.args)  # a fresh one, which keeps no frames

    with monkeypatch.context() as patch:
        patch.setattr(where, step, refuse)
        failures = made(ranks, path)
    assert [type(failure) for failure in failures] == [HbmcommError] * 3
    assert len({str(failure) for failure in failures}) == 1
    assert all(isinstance(outcome, Arena) for outcome in made(ranks, path))


def test_a_slice_that_no_rank_has_is_not_looked_for(path: str) -> None:
    def lie(offer: Any, _: Any) -> Any:
        return offer._replace(arrays=77)

    failures = Cast(2)(lambda rank: arena(rank.misled(lie), path))
    assert [type(failure) for failure in failures] == [ArenaUnavailable] * 2
    assert "has no slice 77" in str(failures[0])
