"""The environment of each MPI, with what ranks of tests import beside the project.

`python -m tests.ahead` makes all of them; `./inv test` does so while checkers leave a core idle.
"""

import contextlib
import functools
from pathlib import Path

from experiments.model.environment import MPIS
from experiments.model.errors import Missing
from experiments.provision import mpi_wheels

EXTRAS = ("hypothesis", "ml_dtypes")


@functools.cache
def environment_of(mpi: str) -> Path:
    """The folder of an MPI's environment, made where it is missing.

    Raises:
        Missing: pip could not make it.
    """
    folder = mpi_wheels.ensure(mpi, print)
    mpi_wheels.add(mpi, "tests", EXTRAS, print)
    return folder


if __name__ == "__main__":
    for mpi in MPIS:
        with contextlib.suppress(Missing):  # the tests that need it say so
            environment_of(mpi)
