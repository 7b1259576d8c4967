"""A shared segment is found by whoever may, and by no one else in its place."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hbmcomm.memory import kernel
from hbmcomm.memory import segment as shared
from hbmcomm.memory.segment import HUGE_PAGE, Way

pytestmark = pytest.mark.alone

BYTES = 64 * HUGE_PAGE


def open_files() -> set[str]:
    return {each.name for each in Path("/proc/self/fd").iterdir()}


def view(segment: shared.Segment, nbytes: int) -> np.ndarray:
    interface = {"version": 3, "shape": (nbytes,), "typestr": "|u1"}
    holder = type("Holder", (), {})()
    holder.__array_interface__ = interface | {"data": (segment.address, False)}
    return np.asarray(holder)


@pytest.mark.parametrize("way", shared.WAYS)
def test_what_one_writes_the_other_reads(way: Way) -> None:
    made, notice, hide = shared.make(way, BYTES)
    found = shared.find(notice)
    hide()
    assert found.address != made.address
    assert made.address % HUGE_PAGE == found.address % HUGE_PAGE == 0
    view(made, 5000)[:] = 7
    assert (view(found, 5000) == 7).all()


def test_a_hidden_segment_has_no_name_left() -> None:
    before = set(shared.SHM.glob("hbmcomm.*"))
    _made, notice, hide = shared.make("shm", BYTES)
    assert Path(notice.path).stat().st_mode & 0o777 == 0o600
    hide()
    hide()
    assert set(shared.SHM.glob("hbmcomm.*")) == before
    with pytest.raises(FileNotFoundError):
        shared.find(notice)


def test_another_file_at_the_same_path_is_not_taken_for_it() -> None:
    _made, notice, _hide = shared.make("memfd", BYTES)
    device, inode = notice.identity
    elsewhere = replace(notice, identity=(device, inode + 1))
    on_another_machine = replace(notice, name="hbmcomm.0123456789abcdef")
    opened = open_files()
    for impostor in (elsewhere, on_another_machine):
        with pytest.raises(FileNotFoundError, match="another file"):
            shared.find(impostor)
    assert open_files() == opened
    assert shared.find(notice).nbytes == BYTES


def test_no_two_anonymous_files_have_one_name() -> None:
    names = {shared.make("memfd", BYTES)[1].name for _ in range(3)}
    assert len(names) == 3


def test_a_segment_takes_no_memory_until_it_is_populated_and_gives_all_back() -> None:
    descriptors = len(open_files())
    made, _notice, _hide = shared.make("memfd", BYTES)
    assert os.fstat(made.descriptor).st_blocks == 0
    shared.populate(made, HUGE_PAGE, HUGE_PAGE, huge=True)
    assert os.fstat(made.descriptor).st_blocks * 512 == HUGE_PAGE
    address = made.address
    del made, _notice, _hide
    assert len(open_files()) == descriptors
    assert f"{address:x}-" not in Path("/proc/self/maps").read_text()


def huge_bytes(segment: shared.Segment) -> int:
    """Of a segment, as this process's page tables have it."""
    told = Path("/proc/self/smaps").read_text().split(f"\n{segment.address:x}-")[1]
    return int(re.findall(r"ShmemPmdMapped: +(\d+) kB", told)[0]) * 1024


def test_pages_that_were_dealt_out_are_not_gathered_into_huge_ones() -> None:
    whole, dealt = (shared.make("memfd", BYTES)[0] for _ in range(2))
    shared.populate(dealt, 0, 4 * HUGE_PAGE, huge=False)
    assert huge_bytes(dealt) == 0
    shared.populate(whole, 0, 4 * HUGE_PAGE, huge=True)
    if not huge_bytes(whole):
        pytest.skip("this kernel gives shared memory no huge pages")


def test_a_file_that_cannot_be_mapped_leaves_nothing_open() -> None:
    descriptors = len(open_files())
    with pytest.raises(OSError):
        shared.make("memfd", 2**62)
    assert len(open_files()) == descriptors


def test_a_file_that_cannot_grow_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _nbytes: int) -> None:
        raise OSError(27, "File too large")

    monkeypatch.setattr(os, "ftruncate", refuse)
    descriptors, names = len(open_files()), set(shared.SHM.iterdir())
    for way in shared.WAYS:
        with pytest.raises(OSError, match="too large"):
            shared.make(way, BYTES)
    assert (len(open_files()), set(shared.SHM.iterdir())) == (descriptors, names)


def test_a_mapping_lies_on_the_border_asked_for() -> None:
    descriptor = os.memfd_create("test")
    os.ftruncate(descriptor, kernel.PAGE)
    address = kernel.map_shared(descriptor, kernel.PAGE, 2**24)
    assert address % 2**24 == 0
    kernel.unmap(address, kernel.PAGE)
    os.close(descriptor)
