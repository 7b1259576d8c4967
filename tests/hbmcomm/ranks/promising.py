"""What a rank program of promises is made of: functions that each keep one, tried by name.

A program decorates them with `promise`, or with `promise(TRANSPORT...)` where they take one, and
ends with `keep()`. Its command line names those to be tried, in this order; without names, all.
Every rank prints "kept NAME" for each, and "kept all" at the end.

This module itself is a rank program: it runs the programs that its command line names, one after
the other. What one of them leaves must not change the next.
"""

import gc
import runpy
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from mpi4py import MPI

from tests.hbmcomm.ranks.ending import moving_on, say

_promises: dict[str, list[Callable[[], None]]] = {}


def promise(*how: Any) -> Any:
    """Have `keep` try a function, once for each transport; a broken promise raises."""
    if callable(how[0]):
        _promises[how[0].__name__] = [how[0]]
        return how[0]

    def by_transport(function: Callable[[str], None]) -> Callable[[str], None]:
        _promises[function.__name__] = [partial(function, transport) for transport in how]
        return function

    return by_transport


def keep() -> None:
    """Try the promises, all ranks one after the other."""
    for name in sys.argv[1:] or _promises:
        for act in _promises[name]:
            moving_on()
            act()
            MPI.COMM_WORLD.Barrier()
        say(f"kept {name}")
    say("kept all")
    _promises.clear()  # the next program may have a promise of the same name


def until(test: Callable[[], bool]) -> None:
    """Try again and again, without rest, as a program that polls does."""
    while not test():
        pass


def lines_of_python(act: Callable[[], object]) -> int:
    """How many functions in Python run in it, beside itself."""
    entered: list[str] = []
    sys.setprofile(lambda frame, event, _: entered.append(event))
    try:
        act()
    finally:
        sys.setprofile(None)
    return entered.count("call") - 1


if __name__ == "__main__":
    for program in sys.argv[1:]:
        sys.argv = [program]
        runpy.run_path(program, run_name="__main__")
        gc.collect()
