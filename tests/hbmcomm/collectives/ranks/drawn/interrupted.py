"""A rank is interrupted in the middle of random calls: the others learn of it, nothing is spoilt.

The calls are on a communicator of their own, which is unusable then.
"""

import itertools
import time
from dataclasses import replace

import numpy as np
from drawn.attempt import GUARD, Attempt
from drawn.calls import draw
from drawn.expected import expected
from drawn.flights import Interrupter, Interruption
from mpi4py import MPI

from hbmcomm import Communicator, HbmcommError

SOON = 0.02  # seconds until the interrupt, at most
LATEST = 0.002  # seconds by which a rank may be late
KEPT = 4  # attempts with memory that peers may touch when the interrupt comes


def interrupt(parent: Communicator, seed: int, interrupter: Interrupter) -> None:
    """Interrupt one rank of `parent`; then no byte of memory that is used again may change."""
    sizes = _calls_until_the_end(parent, seed, interrupter)
    again = [parent.empty(size, "u1") for size in sizes] + [np.empty(size, "u1") for size in sizes]
    for each in again:
        each[:] = GUARD
    MPI.Intracomm.Barrier(parent)
    for each in again:
        assert (each == GUARD).all(), f"memory was written after an interrupt, seed {seed}"


def _calls_until_the_end(parent: Communicator, seed: int, interrupter: Interrupter) -> list[int]:
    """Random calls until one fails; the lengths in bytes of the memory that they used last."""
    rng = np.random.default_rng(seed)
    own = np.random.default_rng([seed, parent.rank])
    is_victim = parent.rank == int(rng.integers(parent.size))
    attempts: list[Attempt] = []
    try:
        with parent.Dup() as comm:
            if is_victim:
                interrupter.set_off(float(rng.uniform(1e-6, SOON)))
            for index in itertools.count():
                if is_victim and not interrupter.armed:  # it was raised where nobody can catch it
                    raise Interruption
                rng = np.random.default_rng([seed, index])
                call = draw(rng, comm.size, comm.transport, large=0.1)
                attempt = Attempt(replace(call, seed=index), comm)
                attempts = [*attempts[-KEPT:], attempt]
                if own.random() < 0.1:
                    time.sleep(own.uniform(0, LATEST))
                attempt.run()
                if text := attempt.wrong(expected(attempt.call, comm.rank)):
                    raise AssertionError(f"call {index} of interrupted seed {seed}: {text}: {call}")
    except (Interruption, KeyboardInterrupt, HbmcommError) as error:
        assert is_victim or isinstance(error, HbmcommError), error
    return [each.raw.size for attempt in attempts for each in (attempt.give, attempt.take)]
