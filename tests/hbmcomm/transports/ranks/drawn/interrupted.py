"""A rank is interrupted in the middle of random calls: the others learn of it, nothing is spoilt.

The calls are on a communicator of their own, which is unusable then.
"""

import itertools
import time
from dataclasses import replace

import numpy as np
from drawn.attempt import GUARD, Attempt
from drawn.calls import Call, Layout, draw, dtype_of, on_pages
from drawn.expected import expected
from drawn.flights import Interrupter, Interruption
from mpi4py import MPI
from numpy.random import Generator

from hbmcomm import Communicator, HbmcommError

SOON = 0.02  # seconds until the interrupt, at most
LATEST = 0.002  # seconds by which a rank may be late
KEPT = 4  # attempts with memory that peers may touch when the interrupt comes
SLOW = 0.2  # of a peer's calls stall while they read what they give
STALL = (0.01, 0.05)  # seconds
WRITTEN = 0.5  # of the victims are roots of gathers, of which peers that stall write the results
LONG = (1 << 16, 1 << 18)  # bytes of such a block
CALLS = 4  # of which the interrupt comes in one
DURING = (0.001, 0.03)  # seconds from the beginning of such a call until the interrupt


def interrupt(parent: Communicator, seed: int, interrupter: Interrupter, with_stalls: bool) -> None:
    """Interrupt one rank of `parent`; then no byte of memory that is used again may change.

    With stalls, a peer may be in the middle of a copy into memory of that rank.
    """
    sizes = _calls_until_the_end(parent, seed, interrupter, SLOW if with_stalls else 0.0)
    again = [parent.empty(size, "u1") for size in sizes] + [np.empty(size, "u1") for size in sizes]
    for array in again:
        array[:] = GUARD
    MPI.Intracomm.Barrier(parent)
    for array in again:
        assert (array == GUARD).all(), f"memory was written after an interrupt, seed {seed}"


def _gather(rng: Generator, comm: Communicator, root: int) -> Call:
    """A gather of long blocks into the root's arena, where the other ranks write them."""
    while True:
        call = draw(rng, comm.size, comm.transport, large=0.1)
        nbytes = call.count * dtype_of(call.dtype).itemsize
        if call.name == "Gather" and LONG[0] <= nbytes <= LONG[1]:
            takes = tuple(Layout("arena", layout.form) for layout in call.takes)
            return replace(call, root=root, takes=takes)


def _attempt(call: Call, comm: Communicator, own: Generator, slow: float) -> Attempt:
    """A call that stalls in this share of cases."""
    if own.random() >= slow:
        return Attempt(call, comm)
    attempt = Attempt(on_pages(call, comm.rank), comm)

    def make_slow() -> None:
        assert attempt.give.pages
        attempt.give.pages.make_slow(own, own.uniform(*STALL))

    attempt.make_slow = make_slow
    return attempt


def _calls_until_the_end(
    parent: Communicator, seed: int, interrupter: Interrupter, slow: float
) -> list[int]:
    """Random calls until one fails; the lengths in bytes of the memory that they used last."""
    rng = np.random.default_rng(seed)
    own = np.random.default_rng([seed, parent.rank])
    victim, is_written = int(rng.integers(parent.size)), rng.random() < WRITTEN
    is_victim = parent.rank == victim
    attempts: list[Attempt] = []
    try:
        with parent.Dup() as comm:
            chosen = int(own.integers(CALLS)) if is_victim and is_written else -1
            if is_victim and not is_written:
                interrupter.set_off(own.uniform(1e-6, SOON))
            for index in itertools.count():
                is_off = is_victim and index > chosen
                if is_off and not interrupter.armed:  # it was raised where nobody can catch it
                    raise Interruption
                rng = np.random.default_rng([seed, index])
                call = draw(rng, comm.size, comm.transport, large=0.1)
                call = _gather(rng, comm, victim) if is_written else call
                stalling = 0.0 if is_victim or not slow else 1.0 if is_written else slow
                attempt = _attempt(replace(call, seed=index), comm, own, stalling)
                attempts = [*attempts[-KEPT:], attempt]
                if own.random() < 0.1:
                    time.sleep(own.uniform(0, LATEST))
                if index == chosen:
                    interrupter.set_off(own.uniform(*DURING))
                attempt.run()
                if text := attempt.wrong(expected(attempt.call, comm.rank)):
                    raise AssertionError(f"call {index} of interrupted seed {seed}: {text}: {call}")
    except (Interruption, KeyboardInterrupt, HbmcommError) as error:
        assert is_victim or isinstance(error, HbmcommError), error
    return [memory.raw.size for attempt in attempts for memory in (attempt.give, attempt.take)]
