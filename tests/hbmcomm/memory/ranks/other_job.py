"""Another job, of one process without MPI, that wants a device all for itself.

Usage: other_job.py DEVICE. Says what hinders it, or looks through all of the memory that it gets.
"""

import sys

import numpy as np
from stand_in import MIB, size_of, use

import hbmcomm
from hbmcomm.memory import dax_arena


def main(path: str) -> None:
    use(path)
    try:
        arena, _ = dax_arena.create_arena(lambda value: [value], 0, 1, path, 4 * MIB)
    except hbmcomm.KindUnavailable as error:
        print("refused:", error)
        return
    kept, nbytes = [], 64 * MIB
    while nbytes >= MIB:
        try:
            kept.append(np.asarray(arena.allocate(nbytes)))
        except hbmcomm.OutOfMemory:
            nbytes //= 2
            continue
        assert not kept[-1].view("uint64").any(), "bytes of an earlier job are visible"
    total = sum(array.nbytes for array in kept)
    assert total > size_of(path) - 12 * MIB, f"only {total:,} bytes could be had"
    print(f"had {total // MIB} MiB, all of it zero")


if __name__ == "__main__":
    main(sys.argv[1])
