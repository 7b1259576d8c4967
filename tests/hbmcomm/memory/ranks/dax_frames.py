"""Root's program: an array of an arena on a device is in the frames that the device has.

Usage: dax_frames.py DEVICE. Nothing that the library reports counts here: the kernel's page table
of this process (pagemap; only root reads its frames) is compared with the device's addresses.
Prints these, "0x100000000-0x127400000", when all held.
"""

import mmap
import sys
from pathlib import Path

import numpy as np
from stand_in import MIB

from hbmcomm.memory import dax_arena

PRESENT, FRAME = 1 << 63, (1 << 55) - 1
"""Bits of an entry of pagemap: bit 63, and those of the frame's number."""


def frames(array: np.ndarray) -> np.ndarray:
    """Physical addresses of the touched pages under an array."""
    first = array.ctypes.data // mmap.PAGESIZE
    last = -(-(array.ctypes.data + array.nbytes) // mmap.PAGESIZE)
    with Path("/proc/self/pagemap").open("rb") as pagemap:
        pagemap.seek(first * 8)
        entries = np.frombuffer(pagemap.read((last - first) * 8), "uint64")
    frame_numbers = entries[(entries & np.uint64(PRESENT)) > 0] & np.uint64(FRAME)
    return frame_numbers * np.uint64(mmap.PAGESIZE)


def main(path: str) -> None:
    device = Path("/sys/bus/dax/devices") / Path(path).name
    start = int((device / "resource").read_text(), 0)
    end = start + int((device / "size").read_text())
    arena, _ = dax_arena.create_arena(lambda value: [value], 0, 1, path, 4 * MIB)
    array = np.asarray(arena.allocate(5 * MIB)).view("uint8")
    array.fill(1)
    on = frames(array)
    assert len(on) == len(np.unique(on)) >= array.nbytes // mmap.PAGESIZE, len(on)
    assert ((start <= on) & (on < end)).all(), (hex(start), hex(end), on)
    elsewhere = frames(np.ones(MIB, "uint8"))
    assert len(elsewhere) and not ((start <= elsewhere) & (elsewhere < end)).any(), elsewhere
    print(f"{start:#x}-{end:#x}")


if __name__ == "__main__":
    main(sys.argv[1])
