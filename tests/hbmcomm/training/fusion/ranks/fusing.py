"""Rank program: FusedAllreduce against sums that each rank can compute alone.

python fusing.py TRANSPORT
"""

import random
import signal
import sys
import time
from contextlib import nullcontext
from typing import Any

import numpy as np
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError, PeerError
from hbmcomm.training.fusion import FusedAllreduce, TensorMismatch, TensorMissing
from tests.hbmcomm.ranks.refusal import refused

WORLD = MPI.COMM_WORLD
RANK, SIZE = WORLD.rank, WORLD.size
SHAPES: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (), (0,), (130, 1000), (1000,), (3, 5)]
FUSION_BYTES = 64 * 1024  # less than the longest tensor


def tensor(number: int, shape: tuple[int, ...], rank: int, step: int) -> Any:
    """Whole numbers, so that sums do not depend on the order of ranks."""
    draw = np.random.default_rng([number, rank, step])
    return draw.integers(-100, 100, shape).astype("float32")


def due(number: int, shape: tuple[int, ...], step: int) -> Any:
    return sum(tensor(number, shape, rank, step) for rank in range(SIZE))


def check_steps(fused: FusedAllreduce, made: list[Any], scale: float = 1.0) -> None:
    """Some steps, in which each rank submits in an order of its own."""
    for step in range(4):
        order = list(range(len(made)))
        random.Random(1000 * step + RANK).shuffle(order)
        for number in order:
            made[number][...] = tensor(number, SHAPES[number], RANK, step)
            fused.submit(f"t{number}", made[number])
            if number == 2:
                time.sleep(0.002 * RANK)  # ranks are not alike
        fused.wait()
        for number, shape in enumerate(SHAPES):
            assert np.array_equal(made[number], due(number, shape, step) * np.float32(scale))


def check_results(comm: Communicator, overlap: bool, mean: bool) -> None:
    scale = 1 / SIZE if mean else 1.0
    with FusedAllreduce(comm, fusion_bytes=FUSION_BYTES, overlap=overlap, mean=mean) as fused:
        check_steps(fused, [np.empty(shape, "float32") for shape in SHAPES], scale)
        check_steps(fused, [comm.empty(shape, "float32") for shape in SHAPES], scale)
        check_steps(fused, fused.buffers(SHAPES), scale)
        alike = [np.empty(s, "float32") if RANK else comm.empty(s, "float32") for s in SHAPES]
        check_steps(fused, alike, scale)


def check_the_cache(comm: Communicator) -> None:
    """Known tensors cost no exchange, and those of a block are one call without a copy."""
    with FusedAllreduce(comm, overlap=False) as fused:
        made = fused.buffers(SHAPES)
        reducer, negotiation = fused.reducer, fused.negotiation
        for step in range(5):
            for number, buffer in enumerate(made):
                fused.submit(f"t{number}", buffer)
            fused.wait()
            assert (negotiation.exchanges, reducer.calls) == (1, step + 1)
        assert reducer.packed_bytes == 0
        fused.submit("t0", np.ones(3))  # another shape and type, on all ranks
        fused.wait()
        assert (negotiation.exchanges, fused.rounds) == (2, 6)


def check_that_the_rest_is_left(comm: Communicator) -> None:
    """Parts of a tensor of `buffers` are reduced, but not what is between them."""
    with FusedAllreduce(comm, overlap=False) as fused:
        first, second = fused.buffers([(100,), (7,)])
        first[:], second[:] = 1, 1
        for name, part in (("head", first[:10]), ("next", first[10:20]), ("tail", first[32:])):
            fused.submit(name, part)
        fused.submit("second", second)
        fused.wait()
        assert fused.reducer.calls == 2  # neighbours are one call all the same
        assert (first[20:32] == 1).all()
        assert (first[:20] == SIZE).all()
        assert (first[32:] == SIZE).all()
        assert (second == SIZE).all()


def check_mismatches(comm: Communicator, overlap: bool) -> None:
    """An error on all ranks, for that tensor alone; the object stays usable."""
    last = SIZE - 1
    with FusedAllreduce(comm, overlap=overlap) as fused:
        for shape, dtype in (((3 + (last == RANK),), "f4"), ((3,), "f8" if last == RANK else "f4")):
            good, bad = np.ones(5), np.ones(shape, dtype)
            right = fused.submit("right", good)
            wrong = fused.submit("wrong", bad)
            with refused(TensorMismatch, f"on rank {last}; submit one shape"):
                wrong.wait()
            right.wait()
            assert (good == SIZE).all()
            assert (bad == 1).all()
        fused.submit("wrong", bad := np.ones(7)).wait()
        assert (bad == SIZE).all()


def check_absentees(comm: Communicator, overlap: bool) -> None:
    """What a rank never submits is an error for those that wait, in time and at the end.

    Ranks of a busy machine are less than a second apart.
    """
    with FusedAllreduce(comm, overlap=overlap, patience=1.0) as fused:
        fused.submit("mine" if RANK == 0 else "theirs", np.ones(3))
        with refused(TensorMissing, "must be submitted on all ranks"):
            fused.wait()
        fused.submit("ours", np.ones(3)).wait()
    fused = FusedAllreduce(comm, overlap=overlap)
    if RANK == 0:
        fused.submit("mine", np.ones(3))
        with refused(TensorMissing, "a rank has closed without it"):
            fused.close()
    else:
        fused.close()
        fused.close()  # once more does nothing
    with refused(HbmcommError, "was closed"):
        fused.submit("ours", np.ones(3))


def check_patience(comm: Communicator) -> None:
    """It counts for each tensor by itself, and also while another rank submits nothing."""
    with FusedAllreduce(comm, patience=0.4) as fused:
        for _ in range(2):  # first of an unknown tensor, then of a known one
            if RANK == 0:
                fused.submit("late", np.ones(3))
                with refused(TensorMissing, "another rank has submitted nothing"):
                    fused.wait()
            comm.Barrier()
            if RANK:
                fused.submit("late", untouched := np.ones(3))
                with refused(TensorMissing, "'late' must be submitted"):
                    fused.wait()
                assert (untouched == 1).all()
            comm.Barrier()
            fused.submit("late", late := np.ones(3)).wait()
            assert (late == SIZE).all()
        alone = fused.submit("mine" if RANK == 0 else "theirs", np.ones(3))
        time.sleep(0.6 if RANK else 0.35)
        fused.submit("healthy", np.ones(3)).wait()
        with refused(TensorMissing, "must be submitted on all ranks"):
            alone.wait()


class Interrupted(Exception):
    """What the handler of a signal raises."""


def interrupt(*_: object) -> None:
    raise Interrupted


def check_an_interrupt(comm: Communicator) -> None:
    """A handler that raises ends a wait, and leaves nothing behind."""
    signal.signal(signal.SIGALRM, interrupt)
    with FusedAllreduce(comm) as fused:
        if RANK == 0:
            work = fused.submit("w", np.ones(3))
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with refused(Interrupted, ""):
                fused.wait()
        comm.Barrier()
        if RANK:
            work = fused.submit("w", np.ones(3))
        work.wait()


def check_an_error_of_one_rank(comm: Communicator, overlap: bool) -> None:
    """It ends the waits of others, and an interrupted `close` does not pass for a complete one."""
    fused = FusedAllreduce(comm, overlap=overlap)
    work = fused.submit("w", array := np.ones(3))
    array.flags.writeable = RANK != 0
    with refused(ValueError, "read-only") if RANK == 0 else nullcontext():
        work.wait()
    with refused(PeerError, "rank 0 has left") if RANK else nullcontext():
        fused.close()
    fused = FusedAllreduce(comm, overlap=False)
    if RANK == 0:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
    with refused(PeerError if RANK else Interrupted, ""):
        if RANK:
            time.sleep(0.2)
        fused.close()


with Communicator(WORLD, "regular", sys.argv[1]) as comm:
    for overlap in (False, True):
        check_results(comm, overlap, mean=overlap)
        check_mismatches(comm, overlap)
        check_absentees(comm, overlap)
    check_patience(comm)
    check_an_interrupt(comm)
    for overlap in (False, True) if comm.transport == "direct" else ():
        check_an_error_of_one_rank(comm, overlap)
    check_the_cache(comm)
    check_that_the_rest_is_left(comm)
    with FusedAllreduce(comm) as one, FusedAllreduce(comm) as two:  # side by side
        check_steps(one, [np.empty(shape, "float32") for shape in SHAPES])
        check_steps(two, two.buffers(SHAPES))
print("all is well", flush=True)
