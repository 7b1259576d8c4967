"""One operation of a contender as interleave takes it: rewritten before each call, and checked."""

from collections.abc import Callable

from mpi4py import MPI

from experiments.bench.contenders import Ready, nothing
from experiments.bench.interleave import Entrant
from experiments.measure import operations, timing
from experiments.measure.trial import Trial

STEP = 13  # between the iteration numbers of contenders: none finds another's result and passes
UNSET = 127  # in a buffer before the first checked call


def entrant(
    comm: MPI.Intracomm,
    operation: str,
    buffers: tuple[operations.Array, operations.Array],
    pattern: operations.Array,
    ready: Ready,
    index: int,
    begin: Callable[[], object] = nothing,
    ours: bool = True,
) -> Entrant:
    """What takes turns.

    Args:
        comm: of the ranks; checks go over it.
        buffers: send and receive, which the operation was made ready for.
        pattern: what send buffers are filled with, as operations.fill() takes it.
        index: of the contender among those that use the same buffers.
        begin, ours: as Entrant's.
    """
    trial = Trial(operation, comm, [buffers], pattern, lambda send, recv: ready.call)

    def prepare(iteration: int) -> timing.Call:
        if iteration == 0:
            for buffer in buffers:
                buffer.fill(UNSET)
        return trial.prepare(iteration + STEP * index)

    def check() -> None:
        ready.collect()
        trial.check()

    return Entrant(prepare, check, ours=ours, begin=begin)
