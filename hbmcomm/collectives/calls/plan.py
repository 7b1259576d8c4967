"""The result of the `*_init` calls of a communicator."""

from __future__ import annotations

from mpi4py import MPI

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
    `Test` are MPI's calls for the same. A plan keeps its buffers alive until `Free`.
    """

    __slots__ = ()

    def __call__(self) -> None:
        """Run the collective from beginning to end."""
        self.Start()
        self.Wait()
