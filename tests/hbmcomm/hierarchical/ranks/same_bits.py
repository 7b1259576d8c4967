"""Rank program, by on_hosts.py: reductions of random floats give all ranks the same bits.

Prints a line "digest" on each rank, the same in every run with the same hosts and algorithm.
"""

import hashlib
import os

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from tests.hbmcomm.ranks.ending import moving_on, say

WORLD = MPI.COMM_WORLD
ALGORITHMS = ("auto", "ring", "recursive-doubling", "rabenseifner", "tree")

digest = hashlib.sha256()
for algorithm in ALGORITHMS:
    os.environ["HBMCOMM_BETWEEN_HOSTS"] = algorithm
    with Communicator(WORLD, "regular", "hierarchical") as comm:
        for dtype in ("e", "f", "d", "F"):
            for count in (1, 1000, 70_001):
                moving_on()
                rng = np.random.default_rng([WORLD.rank, count])
                values = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 6, count)
                x, y = values.astype(dtype), np.zeros(count, dtype)
                comm.Allreduce(x, y)
                exact = WORLD.allreduce(x.astype("D"))
                assert np.allclose(y, exact, rtol=0.01, atol=0.5 if dtype == "e" else 1e-3)
                found = [y.tobytes()]
                comm.Iallreduce(x, y).Wait()
                found.append(y.tobytes())
                plan = comm.Allreduce_init(x, y)
                plan()
                found.append(y.tobytes())
                assert len(set(WORLD.allgather(found[0])) | set(found)) == 1, (algorithm, dtype)
                digest.update(found[0])
say(f"digest {digest.hexdigest()}")
