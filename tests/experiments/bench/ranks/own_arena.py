"""Rank program: buffers of another build lie in its own arena, placed as those of this build."""

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

import hbmcomm
from experiments.bench.parties import ALIAS, ALIGNMENT, parties
from experiments.bench.question import ask
from experiments.bench.schedule import schedule
from experiments.measure.buffers import make_pool

COMM = MPI.COMM_WORLD
LENGTHS = (1000, 300_000)

folder, private = Path(sys.argv[1]), sys.argv[2] == "private"
package = folder / "hbmcomm"
if COMM.rank == 0:
    shutil.copytree(Path(hbmcomm.__file__).parent, package)
COMM.Barrier()
allocate = np.empty if private else None
pool = make_pool(COMM, "regular", "local", ["direct"], "float32", LENGTHS, 0, allocate)
asked = ask(2, peers="openmpi", against="there", private=private, forms="plain,nonblocking")
found, _, made = parties(COMM, schedule(asked, 1)[0], pool, folder, {0}, package)
other: Any = sys.modules[ALIAS]


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


names = sorted({name for name, _ in found})
assert names == ["direct", "direct-again", "mpi", "other-build", "other-build-again"], names
assert {form for _, form in found} == {"plain", "nonblocking"}
for (name, _), party in found.items():
    theirs = name.startswith("other-build")
    for mine, array in ((pool.send, party.pool.send), (pool.recv, party.pool.recv)):
        assert (array is mine) == (private or not theirs)
        assert array.size == mine.size and array.dtype == mine.dtype
        assert (address(array) - address(mine)) % ALIGNMENT == 0
        if not private:
            assert (other if theirs else hbmcomm).source(array) == "arena"
            assert (hbmcomm if theirs else other).source(array) is None
for each in (*made, *pool.communicators.values()):
    each.Free()
print("ok")
