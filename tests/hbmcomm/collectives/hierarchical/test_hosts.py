"""Ranks that cannot all share memory: every call gives what mpi4py and NumPy give."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.model.environment import MPIS

HERE = Path(__file__).parent / "ranks"
CALLS = HERE.parents[1] / "ranks" / "random_calls.py"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("mpi", "hosts", "leaders", "calls"),
    [
        ("openmpi", "0,1,0,1", "1", 60),
        ("mpich", "0,0,1,2,1", "1", 40),
        ("impi", "0,1,1,0", "2", 60),
        ("openmpi", "0,1,2", "1", 40),
    ],
    ids=["round-robin", "unequal", "two-leaders", "a-rank-each"],
)
def test_random_calls_between_hosts_give_what_mpi4py_and_numpy_give(
    mpirun: Callable[..., Any], mpi: str, hosts: str, leaders: str, calls: int
) -> None:
    found = mpirun(
        *(HERE / "on_hosts.py", hosts.count(",") + 1, hosts, str(CALLS)),
        *("hierarchical", "7", str(calls)),
        mpi=mpi,
        env={"HBMCOMM_LEADERS": leaders, "HBMCOMM_SEGMENT_BYTES": "64KiB"},
    )
    assert "hierarchical: alike" in found.output


@pytest.mark.parametrize("mpi", MPIS)
def test_auto_takes_what_fits_the_ranks_of_each_communicator(
    mpirun: Callable[..., Any], mpi: str
) -> None:
    found = mpirun(HERE / "on_hosts.py", 4, "0,1,0,2", str(HERE / "auto.py"), mpi=mpi)
    assert found.output.count("fits") == 4
