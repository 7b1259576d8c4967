"""Rank program that knows mpi4py alone, and what MPI promises of COMM_WORLD.

Prints "kept" and the module of the class of MPI.COMM_WORLD on each rank.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from mpi4py import MPI
from mpi4py.MPI import COMM_WORLD

assert __name__ == "__main__"
assert sys.argv[1:] == ["--kind", "of mine", "-m"]
assert Path(sys.path[0]) == Path(__file__).parent
assert COMM_WORLD is MPI.COMM_WORLD

world, own = MPI.COMM_WORLD, MPI.COMM_SELF
assert isinstance(world, MPI.Intracomm)
assert type(own) is MPI.Intracomm
assert world.Get_name() == "MPI_COMM_WORLD"
assert not world.Is_inter()
assert MPI.Comm.Get_parent() == MPI.COMM_NULL
assert (world.Get_attr(MPI.TAG_UB) or 0) >= 32767
assert world.Get_group().size == world.size

total = np.empty(1, dtype=int)
world.Allreduce(np.array([world.rank]), total)
assert total[0] == sum(range(world.size))
assert world.sendrecv(world.rank, (world.rank + 1) % world.size) == (world.rank - 1) % world.size

window = MPI.Win.Allocate(8, disp_unit=8, comm=world)
window.Fence()
window.Put(np.array([world.rank]), (world.rank + 1) % world.size)
window.Fence()
assert np.frombuffer(window, dtype=int)[0] == (world.rank - 1) % world.size
window.Free()

exposed = np.zeros(1, dtype=int)
window = MPI.Win.Create(exposed, comm=world)
window.Fence()
window.Accumulate(np.array([1]), 0)
window.Fence()
assert exposed[0] == (world.size if world.rank == 0 else 0)
window.Free()

folder = world.bcast(tempfile.mkdtemp() if world.rank == 0 else None)
file = MPI.File.Open(world, f"{folder}/all", MPI.MODE_CREATE | MPI.MODE_RDWR)
file.Write_at_all(8 * world.rank, np.array([world.rank]))
file.Close()
if world.rank == 0:
    assert (np.fromfile(f"{folder}/all", dtype=int) == np.arange(world.size)).all()
    Path(folder, "all").unlink()
    Path(folder).rmdir()

parity = world.rank % 2
half = world.Split(parity, world.rank)
assert type(half).__name__ == type(world).__name__
bridge = half.Create_intercomm(0, world, 1 - parity)
assert bridge.Is_inter()
assert bridge.remote_size == world.size - half.size
for comm in (bridge, half):
    comm.Free()

sys.stdout.write(f"kept {type(world).__module__}\n")
sys.exit(0)
