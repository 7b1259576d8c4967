"""Heat in a square plate, with its rows divided among ranks: what a change of a line gains.

    mpiexec -n 2 python heat.py
    mpiexec -n 2 python -m hbmcomm --numpy-memory heat.py
    mpiexec -n 2 python heat.py --forms mpi4py,communicator,arena,plan

Several forms take turns in slices of one run, in random order, and all compute the same plate.
Prints for each form, of rank 0: microseconds a step, in the median slice; that over the time of the
first form, with the quartiles of slices; page faults a step; how many slices count; a checksum of
the plate, and the last residual. Slices in which another process took a rank's CPU do not count,
unless a form has fewer than ten without.
"""

import argparse
import contextlib
import random
import resource
import sys
import time
import zlib
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

import hbmcomm

FORMS = {
    "mpi4py": set(),
    "communicator": {"communicator"},
    "arena": {"communicator", "arena"},
    "plan": {"communicator", "arena", "plan"},
    "numpy_memory": {"communicator", "arena", "plan", "numpy_memory"},
    "mpi4py_out": {"out"},
    "out": {"communicator", "arena", "plan", "out"},
    "attach": {"communicator", "arena", "plan", "out", "attach"},
    "mpi4py_objects": {"objects"},
    "objects": {"communicator", "objects"},
}
"""The changes that each form makes to lines of the first; `if` names them below."""
RATE = 0.2
ENOUGH = 10


class Plate:
    """The rows of one rank, between a row of each neighbour. The row above the plate is hot."""

    def __init__(self, form: str, size: int, every: int) -> None:
        changes = self.changes = FORMS[form]
        self.every, self.done = every, 0
        self.comm = hbmcomm.Communicator() if "communicator" in changes else MPI.COMM_WORLD
        zeros = self.comm.zeros if "arena" in changes else np.zeros

        rank, ranks = self.comm.rank, self.comm.size
        self.above = rank - 1 if rank else MPI.PROC_NULL
        self.below = rank + 1 if rank < ranks - 1 else MPI.PROC_NULL
        self.rows = zeros((size // ranks + 2, size))
        if rank == 0:
            self.rows[0, 1:-1] = 1.0
        self.mine, self.most = zeros(1), zeros(1)
        if "plan" in changes:
            self.reduce = self.comm.Allreduce_init(self.mine, self.most, op=MPI.MAX)
        if "out" in changes:
            self.change, self.scratch = np.empty((2, size // ranks, size - 2))
        if "attach" in changes:
            self.share_edges(size)

    def share_edges(self, size: int) -> None:
        """Two copies of the outer rows, for even and odd steps, and a count of steps."""
        self.edges, count = self.comm.zeros((2, 2, size)), self.comm.zeros(1, "uint64")
        names = self.comm.allgather((self.comm.share(self.edges), self.comm.share(count)))
        self.count = self.comm.flags(count)
        self.neighbours = [
            (
                self.rows[halo],
                self.comm.attach(names[rank][0])[:, row],
                self.comm.flags(self.comm.attach(names[rank][1]), writer=rank),
            )
            for rank, halo, row in ((self.above, 0, 1), (self.below, -1, 0))
            if rank != MPI.PROC_NULL
        ]

    def exchange(self) -> None:
        """Get the neighbours' outer rows."""
        u = self.rows
        if "attach" in self.changes:
            for halo, edges, count in self.neighbours:
                count.wait(self.done)
                halo[:] = edges[self.done % 2]
        else:
            self.comm.Sendrecv(u[1], self.above, recvbuf=u[-1], source=self.below)
            self.comm.Sendrecv(u[-2], self.below, recvbuf=u[0], source=self.above)

    def step(self) -> None:
        self.exchange()
        u = self.rows
        middle = u[1:-1, 1:-1]
        if "out" in self.changes:
            change, scratch = self.change, self.scratch
            np.add(u[:-2, 1:-1], u[2:, 1:-1], out=change)
            change += u[1:-1, :-2]
            change += u[1:-1, 2:]
            change -= np.multiply(middle, 4, out=scratch)
            change *= RATE
        else:
            change = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * middle
            change = change * RATE
        middle += change
        self.done += 1
        if "attach" in self.changes:
            self.edges[self.done % 2] = u[1], u[-2]
            self.count.raise_to(self.done)
        if self.done % self.every == 0:
            change = np.abs(change, out=scratch) if "out" in self.changes else np.abs(change)
            self.reduce_residual(change.max())

    def reduce_residual(self, mine: float) -> None:
        """The largest change of all ranks: `most`."""
        if "objects" in self.changes:
            self.most[0] = self.comm.allreduce(float(mine), op=MPI.MAX)
            return
        self.mine[0] = mine
        if "plan" in self.changes:
            self.reduce()
        else:
            self.comm.Allreduce(self.mine, self.most, op=MPI.MAX)

    def memory(self) -> contextlib.AbstractContextManager[object]:
        """Where NumPy allocates during steps; entered once, it costs a program nothing."""
        if "numpy_memory" in self.changes:
            return self.comm.numpy_memory()
        return contextlib.nullcontext()

    def gather(self) -> str:
        """A checksum of the whole plate and of the residual; on rank 0."""
        rows = self.rows[1:-1]
        whole = np.empty((self.comm.size, *rows.shape)) if self.comm.rank == 0 else None
        self.comm.Gather(rows, whole)
        return "" if whole is None else f"{zlib.crc32(whole):08x} {self.most[0]:.6e}"

    def close(self) -> None:
        if "plan" in self.changes:
            self.reduce.Free()
        if "communicator" in self.changes:
            self.comm.Free()


def measure(plate: Plate, steps: int) -> tuple[float, float, float]:
    """Of this rank in a slice: seconds and page faults a step, and how often it was interrupted."""
    with plate.memory():
        MPI.COMM_WORLD.Barrier()
        before, begin = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        for _ in range(steps):
            plate.step()
        seconds = (time.perf_counter() - begin) / steps
        after = resource.getrusage(resource.RUSAGE_SELF)
    faults = (after.ru_minflt - before.ru_minflt) / steps
    return seconds, faults, after.ru_nivcsw - before.ru_nivcsw


def undisturbed(slices: np.ndarray) -> np.ndarray:
    """Of [form, slice, what measure() returns]: in which slices no rank was interrupted.

    All slices count where a form has fewer than ENOUGH: a mixture would compare unlike things.
    """
    interrupted = slices[:, :, 2].copy()
    MPI.COMM_WORLD.Allreduce(MPI.IN_PLACE, interrupted)
    kept = interrupted == 0
    return kept if kept.sum(axis=1).min() >= ENOUGH else np.ones_like(kept)


def whole(least: int) -> Callable[[str], int]:
    """Reads a whole number of at least `least`."""

    def read(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r}: give a whole number of {least} or more")
        return int(text)

    return read


def names(text: str) -> list[str]:
    chosen = text.split(",")
    for form in chosen:
        if form not in FORMS or chosen.count(form) > 1:
            raise argparse.ArgumentTypeError(
                f"{form!r}: give some of {', '.join(FORMS)}, once each"
            )
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--forms", type=names, default=["mpi4py"], help=", ".join(FORMS))
    parser.add_argument("--size", type=whole(3), default=512, help="rows and columns (512)")
    parser.add_argument("--every", type=whole(1), default=1, help="steps between residuals (1)")
    parser.add_argument("--steps", type=whole(1), default=4, help="in a slice (4)")
    parser.add_argument("--slices", type=whole(2), default=200, help="of each form (200)")
    options = parser.parse_args()
    world, forms = MPI.COMM_WORLD, options.forms
    if options.size % world.size:
        problem = f"--size {options.size}: {world.size} ranks cannot have as many rows each"
        sys.exit(problem if world.rank == 0 else 1)

    plates = {form: Plate(form, options.size, options.every) for form in forms}
    for plate in plates.values():
        measure(plate, options.steps)  # warm
    slices = np.empty((len(forms), options.slices, 3))
    order, shuffle = list(range(len(forms))), random.Random(1).shuffle  # alike on all ranks
    for number in range(options.slices):
        shuffle(order)
        for form in order:
            slices[form, number] = measure(plates[forms[form]], options.steps)

    reference = None
    for (form, plate), mine, kept in zip(plates.items(), slices, undisturbed(slices), strict=True):
        checksum = plate.gather()
        plate.close()
        low, middle, high = np.quantile(mine[kept, 0], (0.25, 0.5, 0.75))
        reference = reference or middle
        if world.rank == 0:
            print(
                f"{form:14} {1e6 * middle:8.1f} us, {middle / reference:.2f} "
                f"({low / reference:.2f} to {high / reference:.2f}) of {forms[0]}, "
                f"{mine[:, 1].mean():6.1f} faults, {kept.sum()} slices, {checksum}"
            )


if __name__ == "__main__":
    main()
