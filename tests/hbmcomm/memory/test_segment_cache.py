"""How much a process reserves and how much it keeps, within what the system and the user allow."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from hbmcomm.errors import ArenaUnavailable
from hbmcomm.memory import idle_limit, kernel, segment_cache
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.segment_cache import Lengths
from tests.hbmcomm.memory.cast import Cast

pytestmark = pytest.mark.alone

MIB = 2**20


def test_where_addresses_are_scarce_all_ranks_reserve_less(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = Cast(2)
    large = ranks.arenas()
    map_shared = kernel.map_shared

    def scarce(descriptor: int, nbytes: int, alignment: int) -> int:
        if nbytes > 200 * MIB:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return map_shared(descriptor, nbytes, alignment)

    monkeypatch.setattr(kernel, "map_shared", scarce)
    again = ranks.arenas()
    assert all(place.array_bytes > 200 * MIB for place in again[0].ranks)  # mapped before
    trio = Cast(3)  # a newcomer must map what the others have, and cannot
    trio.segments[:2] = ranks.segments
    arenas = trio.arenas()
    assert all(32 * MIB <= place.array_bytes <= 200 * MIB for place in arenas[0].ranks)
    assert np.asarray(arenas[0].allocate(16 * MIB)).size == 16 * MIB
    assert large[0].ranks[0].array_bytes > 200 * MIB
    monkeypatch.setattr(kernel, "map_shared", lambda *_: scarce(0, 2**40, 0))
    refused = Cast(2).arenas()
    assert {type(failure) for failure in refused} == {ArenaUnavailable}
    assert "Cannot allocate memory" in str(refused[0])


LIMITED = """
import resource, sys
from mpi4py import rc
rc.initialize = False
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.arena_creation import create_arena
from hbmcomm.memory.segment_cache import SegmentCache
from hbmcomm.errors import ArenaUnavailable
import numpy as np
kind = resolve("regular")
used = int(open("/proc/self/statm").read().split()[0]) * 4096
resource.setrlimit(resource.RLIMIT_AS, (used + int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    arena, _ = create_arena(lambda value: [value], 0, 1, lambda: kind, 100000)
except ArenaUnavailable as error:
    print("refused", error)
else:
    x = np.asarray(arena.allocate(20 * 2**20))
    x[:] = 1
    print(arena.ranks[0].array_bytes >> 20, arena.ranks[0].ordinary_bytes >> 20)
"""


@pytest.mark.parametrize(
    ("room", "output"), [(2**30, "384 96"), (200 * MIB, "74 18"), (16 * MIB, "refused")]
)
def test_a_limit_of_address_space_is_kept(room: int, output: str, tmp_path: Path) -> None:
    program = tmp_path / "limited.py"
    program.write_text(LIMITED)
    done = subprocess.run(
        [sys.executable, program, str(room)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith(output), done.stdout + done.stderr


def test_lengths_leave_addresses_for_all_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_cache, "machine", lambda: (2**44, 128))
    for ranks in (1, 64, 128, 1024):
        lengths = segment_cache.lengths(ranks)
        assert ranks * (lengths.arrays + lengths.ordinary) < 2**46 + 2**45
    assert segment_cache.lengths(1).arrays == 2**39
    monkeypatch.setattr(resource, "getrlimit", lambda _: (0, 0))
    assert segment_cache.lengths(4) == Lengths(8 * MIB, 32 * MIB)


@pytest.mark.parametrize(
    ("text", "nbytes"), [("64MiB", 64 * MIB), ("999999999TiB", 2**62), ("", None)]
)
def test_how_much_to_keep_can_be_said(
    text: str, nbytes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(idle_limit.VARIABLE, text)
    assert idle_limit.configured() == nbytes


def test_a_keep_that_no_one_can_read_is_an_error_on_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(idle_limit.VARIABLE, "much")
    failures = Cast(2).arenas()
    assert [str(failure) for failure in failures] == [
        "rank 0: HBMCOMM_ARENA_KEEP=much is not a size; write bytes, or a number and a unit such "
        "as 64MiB"
    ] * 2


def test_an_arena_keeps_what_it_was_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    (own,) = Cast(1).arenas()
    total = sum(node.total_bytes for node in idle_limit.current().nodes)
    assert own.pool.heap.usage.idle_limit == min(256 * MIB, total // 8)
    assert idle_limit.default(resolve("regular"), 64) == min(256 * MIB, total // 64 // 8)
    monkeypatch.setenv(idle_limit.VARIABLE, "10MiB")
    (own,) = Cast(1).arenas()
    block = own.allocate(100 * MIB)
    del block
    assert own.pool.heap.usage.populated == 10 * MIB
    assert os.fstat(own.pool.segment.descriptor).st_blocks * 512 == 10 * MIB
