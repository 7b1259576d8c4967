"""The kernel's account of a process's mappings, read from its text and from this process."""

import mmap
import os

import numpy as np
import pytest

from experiments.emulation import numa_maps
from tests.experiments.emulation.kernel_view import needs_numa_maps

MAPS = """\
7f0000000000-7f0000200000 rw-s 00000000 00:01 2049                       /memfd:hbmcomm (deleted)
7f0000200000-7f0000400000 rw-s 00200000 00:01 2049                       /memfd:hbmcomm (deleted)
7f0000800000-7f0000801000 rw-p 00000000 00:00 0
7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]
"""
NUMA_MAPS = """\
7f0000000000 bind:4 file=/memfd:hbmcomm\\040(deleted) dirty=512 active=0 N4=512 kernelpagesize_kB=4
7f0000200000 bind:4 file=/memfd:hbmcomm\\040(deleted) dirty=3 N4=2 N5=1 kernelpagesize_kB=4
7f0000800000 default
7f0000900000 default anon=1 dirty=1 N0=1 kernelpagesize_kB=4
7ffc00000000 default stack anon=1 dirty=1 N2=1 kernelpagesize_kB=2048
"""


def test_the_two_files_are_put_together() -> None:
    first, second, bare, stack = numa_maps.parse(MAPS, NUMA_MAPS)
    assert (first.start, first.end) == (0x7F0000000000, 0x7F0000200000)
    assert (first.file, first.policy, first.pages) == ("00:01 2049", "bind:4", {4: 2**21})
    assert second.pages == {4: 8192, 5: 4096}
    assert (bare.file, bare.pages) == ("00:00 0", {})
    assert stack.pages == {2: 2**21}


def test_a_file_is_the_sum_of_its_mappings() -> None:
    found = numa_maps.parse(MAPS, NUMA_MAPS)
    assert numa_maps.of_file("00:01 2049", found) == {4: 2**21 + 8192, 5: 4096}
    assert numa_maps.of_file("00:01 7", found) == {}


def test_an_address_is_in_one_mapping_or_in_none() -> None:
    found = numa_maps.parse(MAPS, NUMA_MAPS)
    assert numa_maps.containing(0x7F0000200000, found).start == 0x7F0000200000
    with pytest.raises(LookupError, match="0x10"):
        numa_maps.containing(16, found)


@needs_numa_maps
def test_of_a_shared_file_a_process_tells_what_it_touched() -> None:
    descriptor = os.memfd_create("touched")
    os.ftruncate(descriptor, 2**20)
    with mmap.mmap(descriptor, 2**20) as whole:
        array = np.frombuffer(whole, "uint8")
        file = numa_maps.containing(array.ctypes.data, numa_maps.mappings()).file
        assert numa_maps.of_file(file, numa_maps.mappings()) == {}
        array[: 3 * 4096] = 1
        assert sum(numa_maps.of_file(file, numa_maps.mappings()).values()) == 3 * 4096
        del array
    os.close(descriptor)


@needs_numa_maps
def test_a_stretch_of_memory_is_told_apart_from_its_mapping() -> None:
    """Three touched pages of four, among a hundred."""
    with mmap.mmap(-1, 200 * 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as whole:
        array = np.frombuffer(whole, "uint8")
        array[: 100 * 4096] = 1
        stretch = array[97 * 4096 + 1 : 101 * 4096]
        found = numa_maps.of_memory(stretch.ctypes.data, stretch.nbytes)
        assert sum(found.values()) == 3 * 4096
        after = numa_maps.containing(array.ctypes.data, numa_maps.mappings())
        end = array.ctypes.data + array.nbytes  # the mapping may be longer, as neighbours join it
        assert after.start <= array.ctypes.data and end <= after.end, "not one mapping again"
        del array, stretch
