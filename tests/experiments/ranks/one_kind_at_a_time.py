"""Rank program: of two kinds, the buffers of one are gone before the other's are made.

one_kind_at_a_time.py FOLDER: FOLDER holds launch.json with cells of several kinds, each of 32 MiB.
"""

import re
import sys
from pathlib import Path

from mpi4py import MPI

from experiments.measure import pools
from experiments.measure.buffers import make_pool
from experiments.programs import harness
from experiments.programs.launch_folder import read_launch

MIB = 2**20
made: list[float] = []


def shared_mib() -> float:
    """Resident shared memory of this process, in which arrays of an arena are."""
    match = re.search(r"RssShmem:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def made_alone(*args: object, **more: object) -> object:
    before = shared_mib()
    pool = make_pool(*args, **more)  # type: ignore[arg-type]
    made.append(shared_mib() - before)
    assert before < 16, f"{before} MiB are there before {args[1]} is made"
    assert made[-1] >= 32, f"{args[1]} took {made[-1]} MiB"
    return pool


pools.make_pool = made_alone  # type: ignore[assignment]
harness.main(Path(sys.argv[1]))
asked = read_launch(Path(sys.argv[1])).cells
assert len(made) == len({cell.memory for cell in asked}), made
MPI.COMM_WORLD.Barrier()
