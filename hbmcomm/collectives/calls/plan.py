"""What the `*_init` calls of a communicator return."""

from __future__ import annotations

from mpi4py import MPI


class Plan(MPI.Prequest):
    """A persistent collective: made once, run as often as needed.

    `plan()` runs it from beginning to end. `Start`, and later `Wait` or `Test`, are MPI's two
    parts: `Start` does not block. A plan keeps its buffers until `Free`.
    """

    __slots__ = ()

    def __call__(self) -> None:
        """Run the collective from beginning to end."""
        self.Start()
        self.Wait()
