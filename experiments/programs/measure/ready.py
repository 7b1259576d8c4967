"""An operation or a step of a workload, ready to be timed and checked."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.programs.measure.timing import Call


def nothing() -> None:
    """There is nothing to do."""


@dataclass(frozen=True)
class Ready:
    """One operation over one pair of buffers; every call is a collective.

    Attributes:
        call: what is timed.
        collect: puts the result where it is checked, if it is not there yet.
        close: frees what was made for the operation.
        wake: makes calls possible again after `rest`.
        rest: ends threads that would take CPUs from other contenders; a collective, as `wake` is.
        wrong: does it once and counts wrong elements, where the buffers do not hold the result.
    """

    call: Call
    collect: Callable[[], object] = nothing
    close: Callable[[], object] = nothing
    wake: Callable[[], object] = nothing
    rest: Callable[[], object] = nothing
    wrong: Callable[[], int] | None = None
