"""A step of a workload, ready to be timed and checked."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One step over one process group; both are collectives.

    Attributes:
        call: what is timed.
        wrong: does a step, and counts the elements of this rank's result that are not right.
    """

    call: Callable[[], object]
    wrong: Callable[[], int]
