"""Where the pages of this process's mappings are, by /proc/self/numa_maps; needs no privilege.

The kernel's own word on page tables, read without hbmcomm, so that it can bear witness for it: of a
shared file each process tells the pages that it has itself touched.
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
        policy: such as "bind:4", as the kernel words it.
        pages: {node: bytes} of the touched pages.
    """

    start: int
    end: int
    file: str
    policy: str
    pages: dict[int, int]


def mappings() -> list[Mapping]:
    """Those of this process."""
    return parse((OWN / "maps").read_text(), (OWN / "numa_maps").read_text())


def parse(maps: str, numa_maps: str) -> list[Mapping]:
    """From the text of the two files; what came or went between the two readings is left out."""
    places = {
        int(start, 16): (int(end, 16), f"{device} {inode}")
        for start, end, device, inode in re.findall(
            r"^([0-9a-f]+)-([0-9a-f]+) \S+ \S+ (\S+) (\d+)", maps, re.MULTILINE
        )
    }
    found = []
    for line in numa_maps.splitlines():
        first, policy, *told = line.split()
        start = int(first, 16)
        if start in places:
            end, file = places[start]
            found.append(Mapping(start, end, file, policy, _pages(" ".join(told))))
    return found


def containing(address: int, among: Iterable[Mapping]) -> Mapping:
    """The mapping that an address lies in; LookupError where none of them holds it."""
    for mapping in among:
        if mapping.start <= address < mapping.end:
            return mapping
    raise LookupError(f"no mapping of this process holds address {address:#x}")


def of_memory(address: int, nbytes: int) -> dict[int, int]:
    """{node: bytes} of the touched pages under a stretch of this process's private memory.

    The kernel tells of whole mappings. While it is asked, the stretch is one of its own: advice on
    reading ahead parts it from its neighbours, and does nothing to pages that are there. (Not so
    of a file's huge pages, shared memory's among them: where they are cut, page tables forget.)

    Raises:
        LookupError: it cannot be told from its neighbours.
    """
    first = address // mmap.PAGESIZE * mmap.PAGESIZE
    last = -(-(address + nbytes) // mmap.PAGESIZE) * mmap.PAGESIZE
    _advise(first, last, mmap.MADV_RANDOM)
    found: Counter[int] = Counter()
    for mapping in mappings():
        if first <= mapping.start and mapping.end <= last:
            found.update(mapping.pages)
        elif mapping.start < last and first < mapping.end:
            raise LookupError(f"{first:#x}-{last:#x} lies in a larger mapping: {mapping}")
    _advise(first, last, mmap.MADV_NORMAL)
    return dict(sorted(found.items()))


def of_file(file: str, among: Iterable[Mapping]) -> dict[int, int]:
    """{node: bytes} of what this process has touched of a file, in all of its mappings."""
    found: Counter[int] = Counter()
    for mapping in among:
        if mapping.file == file:
            found.update(mapping.pages)
    return dict(sorted(found.items()))


def _advise(first: int, last: int, advice: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), advice):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "madvise")


def _pages(told: str) -> dict[int, int]:
    size = re.search(r"\bkernelpagesize_kB=(\d+)", told)
    unit = int(size[1]) * 1024 if size else 0
    return {int(node): int(count) * unit for node, count in re.findall(r"\bN(\d+)=(\d+)", told)}
