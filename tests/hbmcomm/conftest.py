"""What ranks see that go on after another one of them has been killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.processes import tracking
from tests.left import nothing_left
from tests.starting import Start, Survivors


@pytest.fixture
def survivors(mpirun: Start, tmp_path: Path) -> Iterator[Survivors]:
    """survivors(program, ranks, *args, mpi="openmpi"): {name: text} of the files that ranks wrote.

    The last argument of the program is the folder of these files. No shared memory of hbmcomm may
    stay; what MPI has left of the killed ranks is removed.
    """
    before, folder = tracking.segments(), tmp_path / "seen"
    folder.mkdir()

    def run(program: Path, ranks: int, *args: str, mpi: str = "openmpi") -> dict[str, str]:
        found = mpirun(program, ranks, *args, str(folder), mpi=mpi, code=None, survivors=True)
        print(found.output)  # pytest shows it where a test fails
        return {path.name: path.read_text("utf-8") for path in folder.iterdir()}

    with nothing_left("hbmcomm.*"):
        yield run
    tracking.remove_segments(before)
