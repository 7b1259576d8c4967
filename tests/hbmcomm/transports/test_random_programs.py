"""Random legal programs give mpi4py's results, and none of them hangs or crashes.

CI runs each launch for some seconds with a seed of its own. A failure prints the command that
repeats it. Twenty minutes under both MPIs, with new seeds:

    HBMCOMM_TEST_MINUTES=20 pytest -m rare tests/hbmcomm/transports/test_random_programs.py

Variables: HBMCOMM_TEST_SEED=SEED or SEED:PROGRAM, the programs of a seed from a number on;
HBMCOMM_TEST_SECONDS, of each launch; HBMCOMM_TEST_WITHOUT=threads,stalls, features to leave out
(`ranks/drawn/features.py` lists them).
"""

import itertools
import os
import re
import time
from pathlib import Path

import pytest

from tests.starting import Ranks, Start

HERE = Path(__file__).parent
THIS = Path(__file__).relative_to(HERE.parents[2])
PROGRAM = HERE / "ranks" / "random_programs.py"
LAUNCHES = (("openmpi", 2), ("mpich", 3), ("openmpi", 3), ("mpich", 2), ("openmpi", 4))
OTHERS = (
    *(("direct", mpi, ranks) for mpi, ranks in (("openmpi", 1), ("mpich", 5), ("impi", 3))),
    *(("direct", "impi", 8), ("mpi", "mpich", 2), ("pickle", "openmpi", 3), ("pickle", "impi", 2)),
)
"""Transports, and other numbers of ranks; for few seconds."""
SECONDS = float(os.environ.get("HBMCOMM_TEST_SECONDS", "6"))  # of a launch
MINUTES = float(os.environ.get("HBMCOMM_TEST_MINUTES", "20"))  # of all launches of the rare test
LONG = 60.0  # seconds of a launch of the rare test
MOST = 120.0  # seconds that the start, the last program and the watch may take besides
ENVIRONMENT = {
    "OMPI_MCA_smsc": "^cma",  # one process cannot read the slow pages of another
    "MPIR_CVAR_CH4_CMA_ENABLE": "0",
    "OMPI_MCA_mpi_yield_when_idle": "1",
}
SERIALIZED = (3, 4)  # the seeds, modulo 5, with less than MPI_THREAD_MULTIPLE

pytestmark = pytest.mark.ranks


def _without() -> str:
    """Features left out with MPICH: its own lower-case calls wait where Open MPI's do not."""
    return ",".join(filter(None, (os.environ.get("HBMCOMM_TEST_WITHOUT"), "late_objects")))


def _environment(mpi: str, seed: str) -> dict[str, str]:
    """The variables of the ranks of a launch."""
    env = dict(ENVIRONMENT)
    if mpi != "openmpi":
        env["HBMCOMM_TEST_WITHOUT"] = _without()
    if int(seed.partition(":")[0]) % 5 in SERIALIZED:
        env["MPI4PY_RC_THREAD_LEVEL"] = "serialized"
    return env


def run_programs(
    mpirun: Start,
    library: Path,
    mpi: str,
    ranks: int,
    seed: str,
    seconds: float,
    transport: str = "direct",
) -> str:
    """Start ranks of an MPI; how many programs were right.

    Fails the test with the last step of each rank and the command that repeats it.
    """
    folder = library.parent / f"steps-{transport}-{mpi}-{ranks}-{seed}"
    folder.mkdir()
    arguments = (transport, str(seconds), seed, str(folder), str(library))
    how = {
        "mpi": mpi,
        "env": _environment(mpi, seed),
        "timeout": seconds + MOST,
        "code": None,
    }
    ended: Ranks = mpirun(PROGRAM, ranks, *arguments, **how)
    right = re.search(rf"\d+ programs with \d+ calls right on {ranks} ranks.*", ended.output)
    if right and not ended.code:
        return right[0]
    steps = "\n".join(_step(path) for path in sorted(folder.glob("rank-*.step")))
    pytest.fail(
        f"{ranks} ranks of {mpi} ended with code {ended.code}, seed {seed}, in the steps\n{steps}\n"
        f"repeat: {_command(transport, mpi, ranks, seed, steps)}\n{ended.output}"
    )


def _step(path: Path) -> str:
    """The step that a rank was in at its end."""
    return f"{path.stem}: {path.read_bytes().decode(errors='replace').strip(' ' + chr(0))}"


def _command(transport: str, mpi: str, ranks: int, seed: str, steps: str) -> str:
    """What repeats a failure, from the program on that a rank was in."""
    first = min((int(number) for number in re.findall(r"program (\d+)", steps)), default=0)
    without = os.environ.get("HBMCOMM_TEST_WITHOUT", "")
    variables = f"HBMCOMM_TEST_SEED={seed.partition(':')[0]}:{first}"
    variables += f" HBMCOMM_TEST_WITHOUT={without}" if without else ""
    test = f"test_random_programs_are_right[{mpi}-{ranks}]"
    if (transport, mpi, ranks) in OTHERS:
        test = f"test_other_transports_and_numbers_of_ranks_are_right[{transport}-{mpi}-{ranks}]"
    return f"{variables} pytest '{THIS}::{test}'"


@pytest.mark.parametrize(("mpi", "ranks"), LAUNCHES)
def test_random_programs_are_right(mpirun: Start, slow_pages: Path, mpi: str, ranks: int) -> None:
    own = str(1 + LAUNCHES.index((mpi, ranks)))
    seed = os.environ.get("HBMCOMM_TEST_SEED", own)
    assert run_programs(mpirun, slow_pages, mpi, ranks, seed, SECONDS)


@pytest.mark.parametrize(("transport", "mpi", "ranks"), OTHERS)
def test_other_transports_and_numbers_of_ranks_are_right(
    mpirun: Start, slow_pages: Path, transport: str, mpi: str, ranks: int
) -> None:
    seed = os.environ.get("HBMCOMM_TEST_SEED", "1")
    assert run_programs(mpirun, slow_pages, mpi, ranks, seed, SECONDS * 0.4, transport)


@pytest.mark.rare
@pytest.mark.timeout(60 * MINUTES + 600)
def test_many_minutes_of_random_programs_are_right(mpirun: Start, slow_pages: Path) -> None:
    seed = int(os.environ.get("HBMCOMM_TEST_SEED", "1"))
    end = time.monotonic() + 60 * MINUTES
    for index, (mpi, ranks) in enumerate(itertools.cycle(LAUNCHES)):
        seconds = min(LONG, end - time.monotonic())
        if seconds < 1:
            break
        right = run_programs(mpirun, slow_pages, mpi, ranks, str(seed + index), seconds)
        print(f"{mpi}, seed {seed + index}: {right}")
