"""Rank program, by on_hosts.py 0,1,0,2: promises of transport hierarchical.

Prints a line "digest" on each rank, the same in every run with the same hosts.
"""

import hashlib
import os
import time
from unittest import mock

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator
from hbmcomm.hierarchical import watch
from tests.hbmcomm.ranks.ending import moving_on, say
from tests.hbmcomm.ranks.promising import keep, promise
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
ALGORITHMS = ("auto", "ring", "recursive-doubling", "rabenseifner", "tree")
LATE = 1.3  # seconds, after which ranks that wait report their call to the others


@promise
def arguments_that_mpi_refuses_leave_it_usable() -> None:
    comm = Communicator(WORLD, "regular", "hierarchical")
    x, y, fixed = np.ones(4), np.zeros(4), np.zeros(4)
    fixed.flags.writeable = False
    comm.Allreduce(x, y)
    for attempt in (
        lambda: comm.Bcast(x, root=99),
        lambda: comm.Reduce(x, y, root=-5),
        lambda: comm.Allreduce(x, fixed),
        lambda: comm.Allreduce(x, np.zeros(3)),
        lambda: comm.Allgather(x, np.zeros(3)),
        lambda: comm.Alltoall(np.zeros(5), np.zeros(5)),
        lambda: comm.Allreduce(x, y, MPI.BAND),
        lambda: comm.Allreduce(MPI.IN_PLACE, y, MPI.BXOR),
        lambda: comm.Reduce(x.astype("D"), np.zeros(4, "D"), MPI.MAX, comm.size - 1),
    ):
        with refused((ValueError, TypeError, BufferError, MPI.Exception)):
            attempt()
    comm.Bcast(fixed if comm.rank == 1 else x, root=1)
    assert comm.rank == 1 or (x == 0).all()
    comm.Allreduce(MPI.IN_PLACE, y)
    assert (y == comm.size**2).all()
    comm.Allreduce(y, y)  # hbmcomm takes this for in place
    assert (y == comm.size**3).all()
    comm.Free()


@promise
@mock.patch.object(watch, "GRACE", 0.5)  # seconds after which a rank that left is missed
def calls_in_other_words_are_the_same_while_a_rank_is_late() -> None:
    """Rank 1 leaves before the late rank 3 makes the last call; rank 0 waits for that one alone."""
    comm = Communicator(WORLD, "regular", "hierarchical")
    x, all_of_them = np.ones(2), np.zeros(2 * comm.size)
    one, many = (x, all_of_them) if comm.rank else ([x, MPI.DOUBLE], [all_of_them, MPI.DOUBLE])
    comm.Barrier()
    for call, arguments in (
        (comm.Gather, (one, many if comm.rank == 0 else None)),
        (comm.Scatter, (many if comm.rank == 0 else None, one)),
        (comm.Allgather, (one, many)),
    ):
        if comm.rank == comm.size - 1:
            time.sleep(LATE)
        call(*arguments)
    comm.Barrier()
    assert (all_of_them == 1).all()
    if comm.rank == comm.size - 1:
        time.sleep(LATE)
    total = np.zeros(2) if comm.rank == 0 else None
    comm.Reduce(x, total, root=0)
    assert total is None or (total == comm.size).all()
    comm.Free()


@promise
def reductions_of_random_floats_give_all_ranks_the_same_bits() -> None:
    digest = hashlib.sha256()
    for algorithm in ALGORITHMS:
        os.environ["HBMCOMM_BETWEEN_HOSTS"] = algorithm
        with Communicator(WORLD, "regular", "hierarchical") as comm:
            for dtype in ("e", "f", "d", "F"):
                for count in (1, 1000, 70_001):
                    moving_on()
                    digest.update(the_same_bits(comm, np.dtype(dtype), count))
    say(f"digest {digest.hexdigest()}")


def the_same_bits(comm: Communicator, dtype: np.dtype, count: int) -> bytes:
    rng = np.random.default_rng([WORLD.rank, count])
    values = rng.standard_normal(count) * 2.0 ** rng.integers(-6, 6, count)
    x, y = values.astype(dtype), np.zeros(count, dtype)
    sums = []
    for reduce in (
        lambda: comm.Allreduce(x, y),
        lambda: comm.Iallreduce(x, y).Wait(),
        comm.Allreduce_init(x, y),
    ):
        reduce()
        sums.append(y.tobytes())
    exact = WORLD.allreduce(x.astype("D"))
    assert np.allclose(y, exact, rtol=0.01, atol=0.5 if dtype == "e" else 1e-3)
    assert len(set(WORLD.allgather(sums[0])) | set(sums)) == 1, (count, dtype)
    return sums[0]


if __name__ == "__main__":
    keep()
