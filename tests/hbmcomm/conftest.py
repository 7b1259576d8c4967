"""Ranks that another one has left or that are slow: what they see."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.processes import tracking
from tests.left import nothing_left
from tests.native.compiling import run, tool_at
from tests.starting import Start, Survivors

DRAWN = Path(__file__).parent / "transports/ranks/drawn"


@pytest.fixture(scope="session")
def slow_pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that makes memory slow."""
    library, source = tmp_path_factory.mktemp("slow") / "slow_pages.so", DRAWN / "slow_pages.c"
    built = run(tool_at("cc"), "-O1", "-shared", "-fPIC", source, "-o", library)
    assert built.returncode == 0, built.stdout
    return library


@pytest.fixture
def survivors(mpirun: Start, tmp_path: Path) -> Iterator[Survivors]:
    """survivors(program, ranks, *args, mpi="openmpi"): {name: text} of the files that ranks wrote.

    The last argument of the program is the folder of these files. No shared memory of hbmcomm may
    stay; what MPI has left of the killed ranks is removed.
    """
    before, folder = tracking.segments(), tmp_path / "seen"
    folder.mkdir()

    def run_on(program: Path, ranks: int, *args: str, mpi: str = "openmpi") -> dict[str, str]:
        done = mpirun(program, ranks, *args, str(folder), mpi=mpi, code=None, survivors=True)
        print(done.output)  # pytest shows it where a test fails
        return {path.name: path.read_text("utf-8") for path in folder.iterdir()}

    with nothing_left("hbmcomm.*"):
        yield run_on
    tracking.remove_segments(before)
