"""Rank program: buffers of another build are in its own arena, placed as those of this build."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from mpi4py import MPI

import hbmcomm
from experiments.catalogue import spec
from experiments.implementations.entrants import ALIAS, ALIGNMENT, Entrants
from experiments.measure.buffers import make_pool
from experiments.model.contender_names import OTHER_PACKAGE
from experiments.model.launch import NUMPY, Cell
from experiments.schedule.blocks import schedule

COMM = MPI.COMM_WORLD
LENGTHS = (1000, 300_000)

folder, buffers = Path(sys.argv[1]), sys.argv[2]
ordinary = buffers == NUMPY
package = folder / "hbmcomm"
if COMM.rank == 0:
    shutil.copytree(Path(hbmcomm.__file__).parent, package)
COMM.Barrier()
os.environ[OTHER_PACKAGE] = str(package)
memory = ("regular", "local", buffers)
pool = make_pool(COMM, memory, ["direct", "mpi"], "float32", LENGTHS, 0)
asked = spec.restrict(
    spec.load("bench"),
    ranks="2",
    peers="openmpi",
    forms="plain,nonblocking",
    private=ordinary,
    other_build=True,
)
launch = schedule(asked, 1)[0].launches[0]
entrants = Entrants(COMM, launch, folder, {0})


names = sorted({cell.transport for cell in launch.cells})
assert names == ["direct", "direct-again", "mpi", "other-build", "other-build-again"], names
for name in names:
    for form in ("plain", "nonblocking"):
        cell = Cell("allreduce", name, "regular", "local", 64, buffers, form)
        contender, theirs = entrants.of(cell, pool)
        assert contender("allreduce", theirs.send[:16], theirs.recv[:16]) is not None
        is_other = name.startswith("other-build")
        other: Any = sys.modules.get(ALIAS)
        for mine, array in ((pool.send, theirs.send), (pool.recv, theirs.recv)):
            assert (array is mine) == (ordinary or not is_other)
            assert array.size == mine.size and array.dtype == mine.dtype
            assert (array.ctypes.data - mine.ctypes.data) % ALIGNMENT == 0
            if not ordinary and is_other:
                assert other.source(array) == "arena"
                assert hbmcomm.source(array) is None
                assert other.source(mine) is None
entrants.close()
for comm in pool.communicators.values():
    comm.Free()
print("ok")
