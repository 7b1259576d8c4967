"""The nodes of the pages of this process's mappings, from /proc/self/numa_maps, without privilege.

Reads the kernel's own view of page tables without hbmcomm, to check hbmcomm against it. In a shared
file the kernel counts the pages that this process has touched.
"""

import ctypes
import mmap
import os
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

OWN = Path("/proc/self")


@dataclass(frozen=True)
class Mapping:
    """One mapping.

    Attributes:
        start, end: the address of its first byte and of the byte after its last.
        file: device and inode of what it maps, as "00:01 2049"; "00:00 0" for no file.
        policy: in the kernel's format, such as "bind:4".
        pages: {node: bytes} of the touched pages.
    """

    start: int
    end: int
    file: str
    policy: str
    pages: dict[int, int]


def mappings() -> list[Mapping]:
    """The mappings of this process."""
    return parse((OWN / "maps").read_text(), (OWN / "numa_maps").read_text())


def parse(maps: str, numa_maps: str) -> list[Mapping]:
    """Mappings from the text of the two files, without those that one of the texts lacks."""
    ranges = {
        int(start, 16): (int(end, 16), f"{device} {inode}")
        for start, end, device, inode in re.findall(
            r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ (\S+) (\d+)", maps, re.MULTILINE
        )
    }
    found = []
    for line in numa_maps.splitlines():
        first, policy, *fields = line.split()
        start = int(first, 16)
        if start in ranges:
            end, file = ranges[start]
            found.append(Mapping(start, end, file, policy, _pages(" ".join(fields))))
    return found


def containing(address: int, among: Iterable[Mapping]) -> Mapping:
    """The mapping that holds an address; LookupError if there is none."""
    for mapping in among:
        if mapping.start <= address < mapping.end:
            return mapping
    raise LookupError(f"no mapping of this process holds address {address:#x}")


def of_memory(address: int, nbytes: int) -> dict[int, int]:
    """{node: bytes} of the touched pages in a range of this process's private memory.

    The kernel counts whole mappings, so MADV_RANDOM splits the range into a mapping of its own for
    the time of the count. That does not change pages of private memory. (It would change huge pages
    of a file or of shared memory: page tables lose them where they are split.)

    Raises:
        LookupError: the range is not a mapping of its own.
    """
    first = address // mmap.PAGESIZE * mmap.PAGESIZE
    last = -(-(address + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    _advise(first, last, mmap.MADV_RANDOM)
    found: Counter[int] = Counter()
    for mapping in mappings():
        if first <= mapping.start and mapping.end <= last:
            found.update(mapping.pages)
        elif mapping.start < last and first < mapping.end:
            raise LookupError(f"{first:#x}-{last:#x} is part of a larger mapping: {mapping}")
    _advise(first, last, mmap.MADV_NORMAL)
    return dict(sorted(found.items()))


def of_file(file: str, among: Iterable[Mapping]) -> dict[int, int]:
    """{node: bytes} that this process has touched of a file, in all mappings of the file."""
    found: Counter[int] = Counter()
    for mapping in among:
        if mapping.file == file:
            found.update(mapping.pages)
    return dict(sorted(found.items()))


def _advise(first: int, last: int, advice: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "madvise")


def _pages(text: str) -> dict[int, int]:
    size = re.search(r"\bkernelpagesize_kB=(\d+)", text)
    unit = int(size[1]) * 1024 if size else 0
    return {int(node): int(count) * unit for node, count in re.findall(r"\bN(\d+)=(\d+)", text)}
