"""Other packages' own tests end as with MPI where a Communicator replaces MPI.COMM_WORLD.

Each suite runs once over mpi4py alone and once by `python -m hbmcomm`; the outcome of every test on
every rank is the same. A test that fails in both runs does not fit this number of ranks, or these
versions: nothing is left out for it.

The packages of other suites (cunumpy, pylops ...) come as wheels, without those of the environment.
"""

import json
import os
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.source_distributions import source, wheels
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "package_suite.py"
OF_PYTEST = ("pluggy", "iniconfig", "packaging", "Pygments")
OF_MATPLOTLIB = (
    *("matplotlib", "contourpy", "cycler", "fonttools", "kiwisolver", "pillow", "pyparsing"),
    "python-dateutil",
)
OF_ASTROPY = ("astropy", "astropy-iers-data", "pyerfa", "PyYAML")
OF_XARRAY = ("xarray", "pandas", "python-dateutil", "tzdata")


class Suite(NamedTuple):
    """The tests of a package."""

    package: str
    least: int
    """So many tests pass at least: on rank 0 of 2, over MPI."""
    modules: str = "."
    """The folder of the source distribution that is imported from."""
    tests: str = "tests"
    """Their folder in the source distribution."""
    needs: tuple[str, ...] = ()
    """What is imported besides NumPy, mpi4py and pytest."""
    isolated: bool = False
    """pip needs build tools of the package to fetch it."""
    pytest: str = "pytest"
    """The one that runs them."""


PARTICLES = ("cunumpy", "maybempi", "array-api-compat")
SUITES = {
    suite.package: suite
    for suite in (
        Suite("mpi-list", 23, "src"),
        Suite(
            "mpiparticles",
            *(51, "src", "src/mpiparticles/tests"),
            needs=(*PARTICLES, "mpiarray"),
        ),
        Suite(
            "mpiarray",
            *(1300, "src", "src/mpiarray/tests/unit"),
            needs=(*PARTICLES, "scipy", "h5py", *OF_ASTROPY, *OF_XARRAY),
        ),
        Suite("pshmem", 13, "src", "src/pshmem/test.py", isolated=True),
        Suite(
            "NuMPI",
            *(786, ".", "test"),
            needs=("scipy", "primefac", "array-api-compat", "array-api-strict"),
            isolated=True,
        ),
        Suite(
            "pylops-mpi",
            470,  # and 48 that need mpi4py-fft, which has no wheel: they fail over both
            needs=("scipy", "pylops", "pyproximal", "typing_extensions", *OF_MATPLOTLIB),
            isolated=True,
            pytest="pytest==8.4.2",  # its conftest.py writes item._nodeid, which later ones refuse
        ),
    )
}
QUICK = [("mpi-list", "openmpi", 2), ("mpiparticles", "openmpi", 2)]
RARE = [
    ("mpi-list", "mpich", 3),
    ("mpiparticles", "mpich", 2),
    ("mpiarray", "openmpi", 2),
    ("mpiarray", "mpich", 3),
    ("pshmem", "openmpi", 2),
    ("NuMPI", "openmpi", 2),
    ("NuMPI", "impi", 3),
    ("pylops-mpi", "openmpi", 2),
    ("pylops-mpi", "mpich", 2),  # 3 ranks on 2 CPUs: MPICH alone needs half an hour
]
SECONDS = 1800.0
"""For one run of a suite."""

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3 * SECONDS)]


def ended(
    start: Start, folder: Path, suite: Suite, mpi: str, ranks: int, runner: str
) -> list[dict[str, str]]:
    """{test: outcome} of each rank.

    Args:
        runner: mpi4py, or hbmcomm: a Communicator is MPI.COMM_WORLD.
    """
    place, needs = (
        source(suite.package, suite.isolated),
        wheels((suite.pytest, *OF_PYTEST, *suite.needs)),
    )
    folder.mkdir()
    settings = folder / "pytest.ini"  # not the package's, which may ask for more plugins
    settings.write_text("[pytest]\n", encoding="ascii")
    ran = start(
        *(folder, runner, ranks, str(PROGRAM), str(folder)),
        *("-q", "-c", str(settings), "--rootdir", str(place), "--color=no", "--tb=short"),
        *("--continue-on-collection-errors", "-o", "faulthandler_timeout=300"),
        str(place / suite.tests),
        mpi=mpi,
        env={
            "PYTHONPATH": os.pathsep.join([str(place / suite.modules), str(needs)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MPLCONFIGDIR": str(folder),
        },
        timeout=SECONDS,
    )
    print(ran.output)
    reports = [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(ranks)]
    for one in reports:
        assert ("Communicator: rank" in one["world"]) == (runner == "hbmcomm"), one["world"]
        assert ("transport direct" in one["world"]) == (runner == "hbmcomm"), one["world"]
    return [one["outcomes"] for one in reports]


@pytest.mark.parametrize(
    ("package", "mpi", "ranks"),
    [
        *(pytest.param(*one, id="-".join(map(str, one))) for one in QUICK),
        *(pytest.param(*one, id="-".join(map(str, one)), marks=pytest.mark.rare) for one in RARE),
    ],
)
def test_a_packages_own_tests_end_as_with_mpi(
    mpirun_in: Start, tmp_path: Path, package: str, mpi: str, ranks: int
) -> None:
    suite = SUITES[package]
    over_mpi, over_hbmcomm = (
        ended(mpirun_in, tmp_path / runner, suite, mpi, ranks, runner)
        for runner in ("mpi4py", "hbmcomm")
    )
    counts = [Counter(outcomes.values()) for outcomes in over_mpi]
    print(f"{package}, {mpi}, {ranks} ranks: {[dict(count) for count in counts]}")
    for rank, (theirs, ours) in enumerate(zip(over_mpi, over_hbmcomm, strict=True)):
        different = {
            test: (theirs.get(test), ours.get(test))
            for test in theirs.keys() | ours.keys()
            if theirs.get(test) != ours.get(test)
        }
        assert different == {}, f"rank {rank}: (over MPI, over hbmcomm)"
    assert counts[0]["passed"] >= suite.least
