"""The result of the `*_init` calls of a communicator."""

from __future__ import annotations

from mpi4py import MPI

from hbmcomm.collectives.core.native import lib

ACTIVE = (
    "this plan is active: it was started, and its run has not been completed by Wait() or Test(); "
    "call Wait() before you start it again"
)
"""The text of the error of a second start."""
FREED = "this communicator was freed; call Free() after its last use, or make another one"
"""The text of the error of a call that only hbmcomm can refuse; MPI refuses others itself."""


class Plan(MPI.Prequest):
    """A persistent collective: created once, run as often as needed.

    `plan()` runs it from beginning to end. `Start`, which does not block, and later `Wait` or
    `Test` are MPI's calls for the same. A plan keeps its buffers alive until `Free`. A second
    `Start` raises HbmcommError until `Wait` or `Test` has completed the plan.
    """

    __slots__ = ()
    _quick = 0
    """Address of the core's plan, where the core can start it without a line of Python."""

    def __call__(self) -> None:
        """Run the collective from beginning to end."""
        self.Start()
        self.Wait()


def _put_start() -> None:
    """Give plans their Start: a method of the core, which asks `_starting` what to start.

    Raises:
        ImportError: mpi4py's function does not show its signature.
    """
    if not lib.hbm_add_method(id(Plan), id(MPI.Prequest.Start), -1, id(None), id(None)):
        raise ImportError("hbmcomm cannot read the signature of mpi4py's Prequest.Start")


_put_start()
