"""A rank that leaves takes nothing away that a slower rank still reads, however it leaves."""

from pathlib import Path

import pytest

from tests.native.compiling import run, tool_at
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "leaving.py"
SLOW_PAGES = PROGRAM.parent / "drawn" / "slow_pages.c"
WAYS = ("collected", "error in with", "freed", "sys.exit", "exception", "signal")
CALLS = ("Reduce", "Allreduce", "Scan", "Allreduce_init")
CASES = [(way, CALLS[number % len(CALLS)]) for number, way in enumerate(WAYS)]
CASES += [("collected", "Allreduce"), ("error in with", "Reduce")]

pytestmark = pytest.mark.ranks


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("slow") / "slow_pages.so"
    built = run(tool_at("cc"), "-shared", "-fPIC", SLOW_PAGES, "-o", made)
    assert built.returncode == 0, built.stdout
    return made


@pytest.mark.parametrize(("way", "call"), CASES)
def test_a_slower_rank_still_gets_the_right_data(
    mpirun: Start, library: Path, way: str, call: str
) -> None:
    done = mpirun(PROGRAM, 2, way, call, str(library), code=None, survivors=True)
    lost = way == "signal" and "rank 1: rank 0 died" in done.output
    assert "rank 1: right" in done.output or lost, done.output
