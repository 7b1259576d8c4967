"""Ranks that cannot all share memory: every call gives what mpi4py and NumPy give."""

import os
from pathlib import Path

import pytest

from tests.starting import Start

HERE = Path(__file__).parent / "ranks"
PROGRAMS = HERE.parents[1] / "transports/ranks"
WITHOUT = {"HBMCOMM_TEST_WITHOUT": "errors,late_objects,many_in_flight"}
"""A rank that leaves by an error is lost to other hosts; many communicators take long to make."""

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("mpi", "hosts", "leaders"),
    [
        ("openmpi", "0,1,0,1", "1"),
        ("openmpi", "0,1,1,0", "2"),
        pytest.param("mpich", "0,1,1,0", "2", marks=pytest.mark.rare),  # its ranks do not yield
        pytest.param("mpich", "0,0,1,2,1", "1", marks=pytest.mark.rare),
        pytest.param("openmpi", "0,1,2", "1", marks=pytest.mark.rare),
    ],
    ids=["round-robin", "two-leaders", "two-leaders-mpich", "unequal", "a-rank-each"],
)
def test_random_programs_between_hosts_are_right(
    mpirun: Start, tmp_path: Path, mpi: str, hosts: str, leaders: str
) -> None:
    seed, ranks = os.environ.get("HBMCOMM_TEST_SEED", "1"), hosts.count(",") + 1
    program = (str(PROGRAMS / "random_programs.py"), "hierarchical", "4", seed, str(tmp_path))
    ended = mpirun(
        *(HERE / "on_hosts.py", ranks, hosts, *program),
        mpi=mpi,
        env={"HBMCOMM_LEADERS": leaders, "HBMCOMM_SEGMENT_BYTES": "64KiB"} | WITHOUT,
    )
    assert f"calls right on {ranks} ranks" in ended.output, f"seed {seed}: {ended.output}"


def test_reductions_between_hosts_are_mpi4pys(mpirun: Start) -> None:
    ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", str(PROGRAMS / "reductions.py"))
    assert ended.output.count("kept all") == 4, ended.output


def test_auto_takes_what_fits_the_ranks_of_each_communicator_and_the_threads_of_mpi(
    mpirun: Start,
) -> None:
    program, threads = str(HERE / "auto.py"), {"MPI4PY_RC_THREAD_LEVEL": "serialized"}
    ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,2", program, mpi="mpich", env=threads)
    assert ended.output.count("fits") == 4


def test_promises_are_kept_with_the_same_bits_in_every_run(mpirun: Start) -> None:
    digests = []
    for mpi in ("openmpi", "mpich"):
        ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,2", str(HERE / "promises.py"), mpi=mpi)
        assert ended.output.count("kept all") == 4, ended.output
        digests += [line for line in ended.output.splitlines() if line.startswith("digest ")]
    assert len(digests) == 8 and len(set(digests)) == 1


@pytest.mark.parametrize(("mpi", "nbytes"), [("openmpi", 8), ("mpich", 4 * 2**20)])
def test_ranks_that_call_different_collectives_get_an_error(
    mpirun: Start, mpi: str, nbytes: int
) -> None:
    program = (HERE / "on_hosts.py", 4, "0,1,0,1", str(HERE / "differing.py"), str(nbytes))
    ended = mpirun(*program, mpi=mpi, code=None)
    errors = [line for line in ended.output.splitlines() if "after " in line]
    assert len(errors) == 4, ended.output
    assert any("CallMismatch: ranks called different" in line for line in errors), errors
    assert all("unusable now" in line for line in errors)


def test_an_error_with_a_call_in_flight_ends_the_calls_of_all(mpirun: Start) -> None:
    ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", str(HERE / "given_up.py"), code=None)
    assert ended.output.count(" ended: ") == 4, ended.output
    assert "its request: this communicator is unusable since" in ended.output


def test_a_close_that_a_signal_interrupts_is_made_up_for_at_the_programs_end(mpirun: Start) -> None:
    program = str(HERE / "interrupted_close.py")
    freed = {"MALLOC_PERTURB_": "165"}  # what is freed is overwritten
    ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", program, mpi="mpich", env=freed, timeout=30)
    assert ended.output.count("interrupted 1") == 4, ended.output
