"""mpi4py's own tests pass with a Communicator in the place of COMM_WORLD and of COMM_SELF.

They come with mpi4py's source distribution (tests/source_distributions.py). Run here are the
collective and the communicator files with transport direct.

By hand, all files with every transport under every MPI with 1 to 4 ranks, about an hour:
    HBMCOMM_MPI4PY_TESTS=all .venv/bin/pytest tests/hbmcomm/test_mpi4py_suite.py
or a part of that, such as -k "impi-3-auto and others", with -rP to see the counts.
Which tests are left out, and why: ranks/mpi4py_suite.py.
"""

import os
import re
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.source_distributions import source
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "mpi4py_suite.py"
ALL = os.environ.get("HBMCOMM_MPI4PY_TESTS") == "all"

FILES = {
    "collectives": ("test_cco_*", "test_comm*"),
    "direct's": ("test_cco_buf", "test_cco_obj", "test_cco_nb_buf", "test_cco_pr_buf", "test_comm"),
    "few": ("test_cco_buf", "test_cco_obj", "test_comm"),
    "one-sided": ("test_rma*", "test_win", "test_util_sync"),
    "others": ("test_*",),
}
"""Files of mpi4py's tests; "others" are those in none of the lists before."""

QUICK = [
    ("openmpi", 1, "direct", "collectives"),
    ("mpich", 2, "direct", "collectives"),
    ("impi", 3, "direct", "direct's"),
    ("openmpi", 4, "direct", "few"),
]
SIMILAR = QUICK[0], QUICK[2]
"""CI leaves these out: the others have more ranks, or more of the files."""
EVERY = [
    (mpi, ranks, transport, files)
    for mpi in MPIS
    for ranks in (1, 2, 3, 4)
    for transport in ("direct", "auto", "mpi")
    for files in ("collectives", "one-sided", "others")
]

COUNTS = r"^{transport}, {ranks} ranks: (\d+) run, 0 failed, .*; (\d+) of those run name a Comm"

pytestmark = [pytest.mark.ranks, pytest.mark.alone, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def folder() -> Path:
    """The `test` folder of mpi4py's source distribution."""
    return source("mpi4py") / "test"


def _modules(folder: Path, files: str) -> list[str]:
    modules = {path.stem for pattern in FILES[files] for path in folder.glob(f"{pattern}.py")}
    if files == "others":
        modules -= {name for group in FILES if group != files for name in _modules(folder, group)}
    assert modules
    return sorted(modules)


@pytest.mark.parametrize(
    ("mpi", "ranks", "transport", "files"),
    [
        pytest.param(
            *case,
            id="-".join(map(str, case)),
            marks=[pytest.mark.rare] * (case in SIMILAR and not ALL),
        )
        for case in (EVERY if ALL else QUICK)
    ],
)
def test_mpi4pys_own_tests_pass(
    mpirun: Start, folder: Path, mpi: str, ranks: int, transport: str, files: str
) -> None:
    modules = _modules(folder, files)
    done = mpirun(
        *(PROGRAM, ranks, str(folder), transport, *modules),
        mpi=mpi,
        timeout=1500.0 if ALL else 280.0,
    )
    print(done.output)
    counts = re.search(COUNTS.format(transport=transport, ranks=ranks), done.output, re.MULTILINE)
    assert counts
    run, named = int(counts[1]), int(counts[2])
    assert run > named > 50
