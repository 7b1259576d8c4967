"""An arena is had by all ranks or by none, whatever fails on whichever; threads play the ranks."""

import ctypes
import errno
import gc
import itertools
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hbmcomm.errors import ArenaUnavailable, HbmcommError, KindUnavailable, OutOfMemory
from hbmcomm.memory import kernel, procfs, segment
from hbmcomm.memory.arena import Arena
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.kinds import Kind, resolve
from hbmcomm.memory.pool import lib
from hbmcomm.memory.segment import Locator
from hbmcomm.memory.segment_cache import SegmentCache
from tests.hbmcomm.memory.cast import CONTROL, Cast
from tests.left import own_files

pytestmark = pytest.mark.alone

MIB = 2**20
ERRORS = [
    OSError(28, "No space left on device"),
    AttributeError("module 'os' has no attribute 'memfd_create'"),
    MemoryError("no memory"),
    struct.error("required argument is not an integer"),
    RuntimeError("can't start new thread"),
]


Files = Callable[[], set[Path]]


@pytest.fixture
def files() -> Iterator[Files]:
    """The named segments that there are of this test."""
    with own_files("hbmcomm.*") as made:
        yield made


def regular() -> Kind:
    return resolve("regular")


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def mapped() -> int:
    return Path("/proc/self/maps").read_text().count("memfd:hbmcomm")


def test_every_rank_finds_every_other_rank_s_arrays_and_control_block() -> None:
    arenas = Cast(3).arenas()
    for owner, own in enumerate(arenas):
        block = own.allocate(10_000)
        np.asarray(block)[:] = owner + 1
        offset = block.address - own.ranks[owner].arrays
        for other in arenas:
            place = other.ranks[owner]
            assert ctypes.string_at(place.arrays + offset, 10_000) == bytes([owner + 1]) * 10_000
            assert ctypes.string_at(place.control, CONTROL) == bytes(CONTROL)
            assert place.control % kernel.PAGE == 0
            assert place.ordinary <= place.control < place.ordinary + place.ordinary_bytes
            assert lib.hbm_is_claimed(place.claim, other.boot)
            assert place.pid == os.getpid()
        assert own.holds(block)
        ctypes.memset(own.ranks[owner].control, 7, CONTROL)
    for own in arenas:
        assert all(ctypes.string_at(place.control, 2) == b"\7\7" for place in own.ranks)


def test_it_takes_two_exchanges_which_carry_what_the_ranks_tell_beside() -> None:
    ranks = Cast(3)

    def tell(rank: Any) -> Any:
        return create_arena(
            *(rank.allgather, rank.number, 3, regular, CONTROL),
            extra=lambda: {"cpus": rank.number},
            segments=rank.segments,
        )

    outcomes = ranks(tell)
    assert ranks.exchanges == 2
    assert [extras for _, extras in outcomes] == [[{"cpus": 0}, {"cpus": 1}, {"cpus": 2}]] * 3


def test_the_arenas_of_the_same_processes_share_their_segments() -> None:
    ranks = Cast(3)
    first = ranks.arenas()
    before = mapped(), open_files()
    second = ranks.arenas()
    assert (mapped(), open_files()) == before
    array = np.asarray(first[0].allocate(1000))
    assert second[0].holds(type("Piece", (), {"address": array.ctypes.data}))
    assert first[0].ranks[1].arrays == second[0].ranks[1].arrays
    assert first[0].ranks[1].control != second[0].ranks[1].control


def test_all_goes_with_the_last_user() -> None:
    files = open_files()
    ranks = Cast(2)
    arenas = ranks.arenas()
    block = arenas[0].allocate(1000)
    assert mapped()
    del arenas
    gc.collect()
    np.asarray(block)[:] = 5
    del block
    gc.collect()
    assert mapped() == 0
    assert open_files() == files


@pytest.mark.parametrize(
    ("step", "error"),
    [("ordinary", ERRORS[0]), *itertools.product(("arrays", "attach"), ERRORS)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_what_closes_every_way_to_one_rank_closes_it_to_all(
    files: Files, step: str, error: Exception
) -> None:
    ranks = Cast(3)

    def refuse(*_arguments: Any) -> Any:
        raise type(error)(*error.args)  # a fresh one, which keeps no frames

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks.segments[1], step, refuse)
        failures = ranks.arenas()
    assert [type(failure) for failure in failures] == [ArenaUnavailable] * 3
    assert len({str(failure) for failure in failures}) == 1
    assert "memfd: rank 1: " in str(failures[0]) and "shm: rank 1: " in str(failures[0])
    assert str(error) in str(failures[0])
    assert all(isinstance(arena, Arena) for arena in ranks.arenas())
    assert not files()


@pytest.mark.parametrize(
    "error",
    [OutOfMemory("none left"), KindUnavailable("no HBM"), ValueError("unknown kind")],
    ids=lambda error: type(error).__name__,
)
def test_what_one_rank_cannot_have_is_the_same_error_on_all(error: Exception) -> None:
    def lack() -> Kind:
        raise type(error)(*error.args)  # a fresh one, which keeps no frames

    def play(rank: Any) -> Any:
        kind: Callable[[], Kind] = lack if rank.number == 2 else regular
        return create_arena(rank.allgather, rank.number, 3, kind, CONTROL, segments=rank.segments)

    ranks = Cast(3)
    failures = ranks(play)
    assert [type(failure) for failure in failures] == [type(error)] * 3
    assert {str(failure) for failure in failures} == {f"rank 2: {error}"}
    assert ranks.exchanges == 1


def test_ctrl_c_is_no_failure_to_be_mended() -> None:
    def interrupted() -> Kind:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        create_arena(lambda value: [value], 0, 1, interrupted, CONTROL, segments=SegmentCache())


@pytest.mark.parametrize("error", [*ERRORS, HbmcommError("no core")], ids=repr)
def test_an_arena_that_one_rank_cannot_begin_with_is_had_by_none(error: Exception) -> None:
    begun: list[int] = []

    def play(rank: Any) -> Any:
        def begin(arena: Arena, extras: list[Any]) -> None:
            assert extras == [None] * 3 and len(arena.ranks) == 3
            if rank.number == 0:
                raise type(error)(*error.args)  # a fresh one, which keeps no frames
            begun.append(rank.number)

        return rank.arena(begin=begin)

    ranks = Cast(3)
    failures = ranks(play)
    assert {1, 2} == set(begun)
    expected = OutOfMemory if isinstance(error, MemoryError) else HbmcommError
    assert [type(failure) for failure in failures] == [expected] * 3
    assert str(error) in str(failures[1])
    assert all(isinstance(arena, Arena) for arena in ranks.arenas())


def blind(prefix: str) -> Callable[[Locator], segment.Segment]:
    attach = segment.attach

    def look(locator: Locator) -> segment.Segment:
        if locator.path.startswith(prefix):
            raise PermissionError(errno.EACCES, "Permission denied", locator.path)
        return attach(locator)

    return look


def test_ranks_without_each_other_s_proc_share_through_dev_shm(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "attach", blind("/proc"))
    ranks = Cast(2)
    arenas = ranks.arenas()
    assert not files()
    assert all(np.asarray(arena.allocate(MIB)).size for arena in arenas)
    exchanges = ranks.exchanges
    again = ranks.arenas()  # what has no name any more is mapped already
    assert again[0].ranks[1].arrays == arenas[0].ranks[1].arrays
    assert ranks.exchanges - exchanges == exchanges == 4


def test_hidden_segments_are_no_use_to_ranks_that_have_not_mapped_them(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segment, "BACKINGS", ("shm",))
    pair, trio = Cast(2), Cast(3)
    first = pair.arenas()
    trio.segments[:2] = pair.segments
    arenas = trio.arenas()
    assert all(isinstance(arena, Arena) for arena in arenas)
    assert trio.exchanges == 4  # the hidden ones, then new ones
    assert first[0].ranks[0].arrays != arenas[0].ranks[0].arrays
    assert not files()


def test_ranks_that_can_share_nothing_are_reported_who_cannot_see_whom(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segment, "attach", blind("/"))
    failures = Cast(2).arenas()
    assert {type(failure) for failure in failures} == {ArenaUnavailable}
    assert "rank 0: cannot map the memory of rank 1" in str(failures[0])
    assert str(failures[0]) == str(failures[1])
    monkeypatch.setattr(segment, "BACKINGS", ())
    assert "no method is available" in str(Cast(2).arenas()[0])


def test_no_memory_for_a_control_block_is_an_error_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Cast(2)

    def short(kind: Kind, nbytes: int) -> Any:
        raise OutOfMemory("nothing left")

    monkeypatch.setattr("hbmcomm.memory.capacity.steps", short)
    failures = ranks.arenas()
    assert [str(failure) for failure in failures] == ["rank 0: nothing left"] * 2


@pytest.mark.parametrize("control", [-1, -4096, 2**40, 100, 2**63])
def test_a_control_block_outside_its_memory_is_refused(control: int) -> None:
    check_liar(lambda offer, _: offer._replace(control=control), "control block cannot be at")


def test_two_ranks_cannot_offer_the_same_memory() -> None:
    check_liar(lambda _, others: others[0].offer, "the same control block")


def test_a_process_without_a_claim_is_refused() -> None:
    other = segment.create("memfd", 64 * MIB)
    check_liar(lambda offer, _: offer._replace(ordinary=other.locator), "holds no claim there")


@pytest.mark.parametrize("offer", [None, "x", 7, ("memfd", "/etc/passwd"), (1,) * 6])
def test_notices_of_any_form_are_no_danger(offer: Any) -> None:
    check_liar(lambda honest, _: honest._replace(arrays=offer), "rank 0: ")


def check_liar(lie: Callable[[Any, Any], Any], text: str) -> None:
    """Rank 1 sends the others something else than it should."""
    failures = Cast(2)(lambda rank: rank.misled(lie).arena())
    assert {type(failure) for failure in failures} == {ArenaUnavailable}
    assert text in str(failures[0])


def test_ranks_of_other_pid_namespaces_have_no_number_here() -> None:
    def lie(offer: Any, _: Any) -> Any:
        return offer._replace(pid_namespace=(1, 2))

    arenas = Cast(2)(lambda rank: rank.misled(lie).arena())
    assert [place.pid for place in arenas[0].ranks] == [os.getpid(), 0]


def test_more_ranks_than_the_core_serves_are_refused() -> None:
    with pytest.raises(HbmcommError, match="up to 1024 ranks"):
        create_arena(lambda value: [value], 0, 1025, regular, CONTROL, segments=SegmentCache())


def test_the_boot_is_the_claims_boot() -> None:
    (own,) = Cast(1).arenas()
    assert own.boot == procfs.boot(Path("/proc")) != 0
