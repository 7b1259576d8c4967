"""Asks the kernel on which NUMA nodes the pages of an array are.

Three methods, best first: move_pages (exact), get_mempolicy (exact, slower), numa_maps with pagemap
(needs no privilege; for a mapping on several nodes, an array's part is in proportion). Containers
refuse the first two by default.

For pages of a dax device the kernel's answers are missing or wrong (tried with 6.1: move_pages
returns ENOENT, numa_maps nothing, get_mempolicy the node that the device is attached to). They
cannot move: they are on the device's target node, which sysfs gives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

from hbmcomm.errors import PlacementUnknown
from hbmcomm.memory import dax_file, kernel
from hbmcomm.memory.arrays import require_array
from hbmcomm.memory.dax_file import DaxFile
from hbmcomm.memory.kernel import PAGE

PAGES_AT_ONCE = 2**16

Method = Callable[[int, int], dict[int, int]]
"""From the first byte and the byte after the last to {node: bytes}; OSError where refused."""


def placement(array: NDArray[Any]) -> dict[int, int]:
    """{node: bytes} of the touched pages under an array, from its lowest byte to its highest.

    Untouched pages are not counted, except on a device, where all pages exist. A device's target
    node is counted by its number even while it is no node.

    Raises:
        PlacementUnknown: The kernel refuses all three methods, or gives no target node of a device.
        TypeError: It is no array of NumPy.
    """
    by_node: Counter[int] = Counter()
    for low, high, device in _parts(array):
        if device is None:
            by_node.update(_ask(low, high)[1])
        elif device.node is None:
            raise PlacementUnknown(
                f"the kernel gives no node of {device.path} (target_node of {device.name} in "
                "sysfs); see the machine's documentation for where its memory is"
            )
        else:
            by_node[device.node] += high - low
    return dict(sorted(by_node.items()))


def node_of(array: NDArray[Any]) -> int | None:
    """The NUMA node of the first page of an array, by one system call.

    None: the array is empty, its page was never touched, or the kernel refuses (`placement` has
    other ways then). Raises TypeError where it is no array of NumPy.
    """
    require_array(array)
    try:
        return kernel.node_of(array.__array_interface__["data"][0]) if array.size else None
    except OSError:
        return None


def placement_method(array: NDArray[Any] | None = None) -> str:
    """The method of `placement`: "move_pages", "get_mempolicy", "numa_maps" or "device".

    Args:
        array: The array; left out: one of ordinary memory. The method is "device" if any part of
            it is on a device.
    """
    if array is not None and any(device for _, _, device in _parts(array)):
        return "device"
    return _ask(*byte_bounds(np.ones(1)))[0]


def _parts(array: NDArray[Any]) -> Iterator[tuple[int, int, DaxFile | None]]:
    """The array's range of addresses, in parts on a device and parts that are not."""
    require_array(array)
    if not array.size:
        return
    start, end = byte_bounds(array)
    for low, high, device in dax_file.mapped(start, end):
        if start < low:
            yield start, low, None
        yield low, high, device
        start = high
    if start < end:
        yield start, end, None


def _ask(start: int, end: int) -> tuple[str, dict[int, int]]:
    refusals = []
    for name, method in METHODS.items():
        try:
            return name, method(start, end)
        except OSError as error:
            refusals.append(f"{name} ({error.strerror or error})")
    raise PlacementUnknown(
        f"the kernel does not give the nodes of pages; refused: {', '.join(refusals)}; "
        f"{kernel.POLICY_CALLS_IN_A_CONTAINER}"
    )


def _by_move_pages(start: int, end: int) -> dict[int, int]:
    by_node: Counter[int] = Counter()
    for first, last in _chunks(start, end):
        for page, node in zip(
            range(first, last, PAGE), kernel.nodes_of(first, (last - first) // PAGE), strict=True
        ):
            if node >= 0:
                by_node[node] += _overlap(page, page + PAGE, start, end)
    return dict(sorted(by_node.items()))


def _by_get_mempolicy(start: int, end: int) -> dict[int, int]:
    by_node: Counter[int] = Counter()
    for page in _touched_pages(start, end):
        by_node[kernel.node_of(page)] += _overlap(page, page + PAGE, start, end)
    return dict(sorted(by_node.items()))


def _by_numa_maps(start: int, end: int) -> dict[int, int]:
    by_node: Counter[int] = Counter()
    for first, last, pages in mappings():
        low, high = max(first, start), min(last, end)
        if low >= high or not pages:
            continue
        touched = sum(_overlap(page, page + PAGE, low, high) for page in _touched_pages(low, high))
        before, total = 0, sum(pages.values())
        for node, count in pages.items():  # in proportion; the sum is exact
            upto = before + count
            by_node[node] += touched * upto // total - touched * before // total
            before = upto
    return {node: nbytes for node, nbytes in sorted(by_node.items()) if nbytes}


METHODS: dict[str, Method] = {
    "move_pages": _by_move_pages,
    "get_mempolicy": _by_get_mempolicy,
    "numa_maps": _by_numa_maps,
}


def _chunks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The whole pages around a range of bytes, in pieces of `PAGES_AT_ONCE`."""
    last = -(-end // PAGE) * PAGE
    for first in range(start & -PAGE, last, PAGES_AT_ONCE * PAGE):
        yield first, min(first + PAGES_AT_ONCE * PAGE, last)


def _touched_pages(start: int, end: int) -> Iterator[int]:
    """Addresses of the pages of a range that have been written, from pagemap.

    A page that was only read is the kernel's page of zeros, on an arbitrary node: it is present,
    but neither exclusive to this process (bit 56) nor of a file or shared memory (bit 61).
    """
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        for first, last in _chunks(start, end):
            pagemap.seek(first // PAGE * 8)
            entries = np.frombuffer(pagemap.read((last - first) // PAGE * 8), dtype=np.uint64)
            present = entries >> np.uint64(63) & np.uint64(1)
            real = (entries >> np.uint64(56) | entries >> np.uint64(61)) & np.uint64(1)
            for page in np.flatnonzero(present & real):
                yield first + int(page) * PAGE


def mappings() -> list[tuple[int, int, dict[int, int]]]:
    """First byte, byte after the last, and {node: pages} of each mapping of this process."""
    ends = {
        int(first, 16): int(last, 16)
        for first, last in re.findall(
            rb"^([0-9a-f]+)-([0-9a-f]+) ", Path("/proc/self/maps").read_bytes(), re.MULTILINE
        )
    }
    areas = []
    for line in Path("/proc/self/numa_maps").read_bytes().splitlines():
        first = int(line.split(maxsplit=1)[0], 16)
        pages = {int(node): int(count) for node, count in re.findall(rb" N(\d+)=(\d+)", line)}
        areas.append((first, ends.get(first, first), pages))
    return areas


def _overlap(low: int, high: int, start: int, end: int) -> int:
    return min(high, end) - max(low, start)
