"""The kernel does what it is asked and says so, on this very machine."""

import ctypes
import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hbmcomm.memory import kernel

LENGTH = 8 * kernel.PAGE


@pytest.fixture
def mapping() -> Iterator[int]:
    address = kernel.map_private(LENGTH)
    yield address
    kernel.unmap(address, LENGTH)


@pytest.mark.parametrize("policy", ["bind", "preferred", "interleave"])
def test_the_kernel_confirms_the_policy_that_was_set(mapping: int, policy: str) -> None:
    kernel.bind(mapping, LENGTH, policy, (0,))
    assert kernel.policy_of(mapping) == (policy, (0,))


def test_weighted_interleaving_is_confirmed_by_the_kernel_or_refused_before_6_9(
    mapping: int,
) -> None:
    if kernel_release() < (6, 9):
        with pytest.raises(OSError, match="mbind: Invalid argument"):
            kernel.bind(mapping, LENGTH, "weighted_interleave", (0,))
        return
    kernel.bind(mapping, LENGTH, "weighted_interleave", (0,))
    assert kernel.policy_of(mapping) == ("weighted_interleave", (0,))
    maps = Path("/proc/self/numa_maps").read_text()
    assert f"{mapping:x} weighted interleave:0" in maps
    kernel.populate(mapping, LENGTH)
    assert kernel.nodes_of(mapping, 8) == [0] * 8


def kernel_release() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", os.uname().release)[:2])


def test_binding_to_a_node_that_is_not_there_is_refused(mapping: int) -> None:
    with pytest.raises(OSError, match="mbind") as failure:
        kernel.bind(mapping, LENGTH, "bind", (1000,))
    assert failure.value.errno == errno.EINVAL


def test_pages_are_nowhere_until_populated_and_then_all_there(mapping: int) -> None:
    kernel.bind(mapping, LENGTH, "bind", (0,))
    assert all(node < 0 for node in kernel.nodes_of(mapping, 8))
    kernel.populate(mapping, 4 * kernel.PAGE)
    assert kernel.nodes_of(mapping, 4) == [0] * 4
    assert all(node < 0 for node in kernel.nodes_of(mapping + 4 * kernel.PAGE, 4))
    assert kernel.node_of(mapping) == 0


def test_populating_leaves_the_contents_alone(mapping: int) -> None:
    ctypes.memmove(mapping + 100, b"kept", 4)
    kernel.populate(mapping + 50, LENGTH - 50)
    assert ctypes.string_at(mapping + 100, 4) == b"kept"


def test_more_than_there_can_be_is_an_os_error() -> None:
    with pytest.raises(OSError, match="mmap") as failure:
        kernel.map_private(2**60)
    assert failure.value.errno == errno.ENOMEM


def test_before_linux_5_14_pages_are_touched_one_by_one(python) -> None:
    result = python(
        """
import ctypes
from hbmcomm.memory import kernel
address = kernel.map_private(16 * kernel.PAGE)
ctypes.memmove(address, b"kept", 4)
kernel.populate(address + 3, 16 * kernel.PAGE - 3)
print(kernel.nodes_of(address, 16), ctypes.string_at(address, 4))
""",
        refuse=("madvise",),
        as_error="EINVAL",
    )
    assert result.stdout == f"{[0] * 16} b'kept'\n", result.stderr
