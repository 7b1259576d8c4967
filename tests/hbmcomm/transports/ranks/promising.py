"""What a rank program of promises is made of: functions that each keep one, tried by name.

A program decorates them with `promise` and ends with `keep()`. Its command line names those to be
tried, in this order; without names, all. For each, every rank prints "kept NAME".
"""

import sys
from collections.abc import Callable

from mpi4py import MPI

from tests.hbmcomm.ranks.ending import moving_on, say

_promises: dict[str, Callable[[], None]] = {}


def promise(function: Callable[[], None]) -> Callable[[], None]:
    """Have `keep` try a function; it raises where the promise is broken."""
    _promises[function.__name__] = function
    return function


def keep() -> None:
    """Try the promises, all ranks one after the other."""
    for name in sys.argv[1:] or _promises:
        moving_on()
        _promises[name]()
        MPI.COMM_WORLD.Barrier()
        say(f"kept {name}")


def until(test: Callable[[], bool]) -> None:
    """Try again and again, without rest, as a program that polls does."""
    while not test():
        pass
