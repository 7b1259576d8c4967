"""Where the pages of this process's mappings are, by /proc/self/numa_maps; needs no privilege.

The kernel's own word on page tables, read without hbmcomm, so that it can bear witness for it: of a
shared file each process tells the pages that it has itself touched.
"""

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


def of_file(file: str, among: Iterable[Mapping]) -> dict[int, int]:
    """{node: bytes} of what this process has touched of a file, in all of its mappings."""
    found: Counter[int] = Counter()
    for mapping in among:
        if mapping.file == file:
            found.update(mapping.pages)
    return dict(sorted(found.items()))


def _pages(told: str) -> dict[int, int]:
    size = re.search(r"\bkernelpagesize_kB=(\d+)", told)
    unit = int(size[1]) * 1024 if size else 0
    return {int(node): int(count) * unit for node, count in re.findall(r"\bN(\d+)=(\d+)", told)}
