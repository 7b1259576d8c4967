"""The fixture that starts ranks reports how they ended and leaves none behind."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.awaiting import alive, wait_for
from tests.starting import Start

pytestmark = pytest.mark.ranks

HANG = """
import os, pathlib, sys, time
from mpi4py import MPI
pathlib.Path(sys.argv[1], str(os.getpid())).touch()
time.sleep(600)
"""


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "program.py"
        path.write_text(text)
        return path

    return write


def test_output_and_exit_code_come_back(mpirun: Start, program: Callable[[str], Path]) -> None:
    hello = program(
        "import sys\nfrom mpi4py import MPI\nsys.stdout.write(f'hello {sys.argv[1]}\\n')"
    )
    assert mpirun(hello, 2, "there").output.count("hello there") == 2
    assert mpirun(program("raise SystemExit(3)"), 1, code=3).code == 3


def test_another_exit_code_fails_with_what_the_ranks_said(
    mpirun: Start, program: Callable[[str], Path]
) -> None:
    with pytest.raises(AssertionError, match="out of luck"):
        mpirun(program("raise SystemExit('out of luck')"), 1)


def test_ranks_that_hang_are_ended_all_of_them(
    mpirun: Start, program: Callable[[str], Path], tmp_path: Path
) -> None:
    for seconds in (5, 60):  # ranks on a busy machine may need more than 5 s to start
        pids = tmp_path / f"pids-{seconds}"
        pids.mkdir()
        with pytest.raises(pytest.fail.Exception, match=f"still ran after {seconds} s"):
            mpirun(program(HANG), 3, str(pids), timeout=seconds)
        started = [int(path.name) for path in pids.iterdir()]
        if len(started) == 3:
            break
    assert len(started) == 3
    wait_for(lambda: not any(map(alive, started)), "end of the ranks", 10)
