"""A device is held by one job at a time, and what it hands out is zero; a file replaces it."""

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import starmap
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from hbmcomm.errors import ArenaUnavailable, KindUnavailable, OutOfMemory
from hbmcomm.memory import dax_mapping, owner_table
from hbmcomm.memory.dax_file import DaxFile
from hbmcomm.memory.dax_mapping import DeviceMapping
from hbmcomm.memory.pool import lib

MIB = 2**20
STALE = b"\xa5"


@pytest.fixture
def device(tmp_path: Path) -> DaxFile:
    """32 MiB and a rest, full of what others left, the table of claims included."""
    path = tmp_path / "device"
    path.write_bytes(STALE * (33 * MIB))
    return DaxFile(str(path), "dax0.0", (0, 0), 33 * MIB, 2 * MIB, 3)


@pytest.fixture
def job(device: DaxFile) -> Iterator[list[DeviceMapping]]:
    """Three ranks that hold the device; this one process plays them all."""
    ranks = [dax_mapping.map_device(device, line, 3) for line in range(3)]
    token = ranks[0].claim_first()
    for rank in ranks[1:]:
        rank.claim_with(token)
    yield ranks
    for rank in ranks:
        rank.release()


def content(held: DeviceMapping, start: int, nbytes: int) -> bytes:
    return ctypes.string_at(held.address + start, nbytes)


def refusal(device: DaxFile) -> str:
    newcomer = dax_mapping.map_device(device, 0, 1)
    with pytest.raises(KindUnavailable) as raised:
        newcomer.claim_first()
    newcomer.release()
    return str(raised.value)


@pytest.mark.parametrize(
    ("nbytes", "alignment", "ranks", "slices"),
    [
        (512 * MIB, 2 * MIB, 1, 510 * MIB),
        (512 * MIB, 2 * MIB, 4, 126 * MIB),
        (502 * MIB + 4096, 4096, 2, 250 * MIB),
        (3 * 2**30 + 5 * MIB, 2**30, 2, 1534 * MIB),
        (4 * MIB, 2 * MIB, 2, 0),
    ],
)
def test_slices_are_whole_steps_of_what_can_be_mapped(
    nbytes: int, alignment: int, ranks: int, slices: int
) -> None:
    device = DaxFile("/dev/dax0.0", "dax0.0", (253, 0), nbytes, alignment, 3)
    assert dax_mapping.slice_bytes(device, ranks) == slices


def test_slices_follow_the_table_without_overlap(job: list[DeviceMapping]) -> None:
    assert {rank.nbytes for rank in job} == {10 * MIB}
    for line, rank in enumerate(job):
        assert rank.address == rank.table + owner_table.TABLE_BYTES + line * 10 * MIB
        assert rank.address % (2 * MIB) == 0


def test_nothing_stale_is_in_what_was_held(job: list[DeviceMapping]) -> None:
    own = job[1]
    own.fill(0, 3 * MIB)
    assert content(own, 0, 4 * MIB) == bytes(4 * MIB)
    assert content(own, 4 * MIB, 6 * MIB) == STALE * (6 * MIB)  # untouched, nobody gets it yet


def test_a_stretch_is_zeroed_once(job: list[DeviceMapping]) -> None:
    own = job[0]
    own.fill(0, 1)
    ctypes.memset(own.address, 7, 10)
    own.fill(0, 4 * MIB)
    assert content(own, 0, 10) == b"\7" * 10
    assert content(own, 10, 4 * MIB - 10) == bytes(4 * MIB - 10)


def test_an_interrupt_hands_out_nothing_stale(job: list[DeviceMapping]) -> None:
    class Enough(Exception):
        pass

    def once(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "hbm_heap_grows":
            sys.setprofile(None)
            raise Enough

    offsets: list[int] = []
    with pytest.raises(Enough):
        sys.setprofile(once)
        # within C from the call to the end of the list
        offsets.extend(starmap(lib.hbm_heap_allocate, [(job[1].heap.handle, MIB, 64)]))
        for _ in range(10**6):
            pass
    assert all(content(job[1], at, MIB) == bytes(MIB) for at in offsets if at < job[1].nbytes)
    assert not np.asarray(job[1].allocate(job[1].kind, MIB)).any()


def test_threads_zero_nothing_that_another_has_been_given(
    job: list[DeviceMapping], monkeypatch: pytest.MonkeyPatch
) -> None:
    zeroed: list[tuple[int, int]] = []

    def slowly(address: int, nbytes: int) -> None:
        zeroed.append((address, nbytes))
        time.sleep(0.02)

    monkeypatch.setattr(dax_mapping.kernel, "zero", slowly)
    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lambda end: job[0].fill(0, end * MIB), (3, 10, 6, 10)))
    starts = [start - job[0].address for start, _ in zeroed]
    assert starts == sorted(set(starts))
    assert sum(nbytes for _, nbytes in zeroed) == 10 * MIB


def test_all_ranks_map_the_same_memory(job: list[DeviceMapping]) -> None:
    job[2].fill(0, 1)
    ctypes.memset(job[2].address, 9, 100)
    assert ctypes.string_at(job[0].start_of(2), 100) == b"\t" * 100


def test_memory_of_a_device_is_taken_from_the_own_slice(job: list[DeviceMapping]) -> None:
    block = job[1].allocate(job[1].kind, 3 * MIB)
    assert job[1].holds(block.address) and not job[0].holds(block.address)
    assert (block.source, block.kind.name, block.kind.nodes) == ("arena", "dax", (3,))
    assert not np.asarray(block).any()
    with pytest.raises(OutOfMemory, match="dax: no 10,485,760 bytes in one piece are free"):
        job[1].allocate(job[1].kind, 10 * MIB)


def test_memory_of_a_device_never_goes_back(job: list[DeviceMapping]) -> None:
    job[0].limit_idle(0)
    block = job[0].allocate(job[0].kind, 6 * MIB)
    np.asarray(block)[:] = 7
    del block
    assert job[0].heap.usage.idle == 6 * MIB
    again = np.asarray(job[0].allocate(job[0].kind, 6 * MIB))
    assert (again == 7).all()  # its own process's, so that this gives nothing away


def test_another_job_sees_who_has_the_device(job: list[DeviceMapping], device: DaxFile) -> None:
    output = refusal(device)
    assert f"device={device.path} is in use by process {os.getpid()} (" in output
    assert f"user {os.getuid()}) on " in output and "and 2 more" in output


def test_a_device_is_in_use_while_any_rank_lives(job: list[DeviceMapping], device: DaxFile) -> None:
    job[0].release()
    job[2].release()
    assert "is in use by process" in refusal(device)
    job[1].release()
    newcomer = dax_mapping.map_device(device, 0, 1)
    newcomer.claim_first()
    newcomer.release()


def test_ranks_that_see_different_devices_are_reported_so(device: DaxFile, tmp_path: Path) -> None:
    other = DaxFile(str(tmp_path / "other"), "dax0.0", (0, 0), 33 * MIB, 2 * MIB, 3)
    Path(other.path).write_bytes(STALE * (33 * MIB))
    first, second = dax_mapping.map_device(device, 0, 2), dax_mapping.map_device(other, 1, 2)
    token = first.claim_first()
    with pytest.raises(ArenaUnavailable, match="another device here than on the first rank"):
        second.claim_with(token)
    first.release()
    second.release()


def test_what_lies_in_the_table_is_not_shown_as_an_owner(
    device: DaxFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner_table, "write", lambda address, data: None)  # as it is at first
    held = dax_mapping.map_device(device, 0, 1)
    held.claim_first()
    assert owner_table.owners(held.table) == {0: "a process that just began"}
    held.release()


def test_a_process_that_is_killed_has_the_device_no_more(device: DaxFile) -> None:
    program = f"""
import time
from hbmcomm.memory import dax_mapping
from hbmcomm.memory.dax_file import DaxFile
held = dax_mapping.map_device({device!r}, 0, 1)
held.claim_first()
print("held", flush=True)
time.sleep(60)
"""
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None and other.stdout.readline() == "held\n"
    assert f"in use by process {other.pid} (-c" in refusal(device)
    other.kill()
    other.wait()
    other.stdout.close()
    held = dax_mapping.map_device(device, 0, 1)
    held.claim_first()
    held.release()


def test_the_child_of_a_fork_gives_nothing_back(device: DaxFile) -> None:
    held = dax_mapping.map_device(device, 0, 1)
    held.claim_first()
    dax_mapping.OF_PROCESS.add(held)
    child = os.fork()
    if not child:
        held.release()
        os._exit(0 if dax_mapping.OF_PROCESS.of(device) is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert dax_mapping.OF_PROCESS.of(device) is held
    assert "is in use" in refusal(device)
    held.release()
