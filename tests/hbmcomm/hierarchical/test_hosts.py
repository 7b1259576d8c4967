"""Ranks that cannot all share memory: every call gives what mpi4py and NumPy give."""

import os
from pathlib import Path

import pytest

from tests.starting import Start

HERE = Path(__file__).parent / "ranks"
CALLS = HERE.parents[1] / "transports/ranks" / "random_calls.py"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("mpi", "hosts", "leaders", "calls"),
    [
        ("openmpi", "0,1,0,1", "1", 40),
        pytest.param("mpich", "0,0,1,2,1", "1", 20, marks=pytest.mark.rare),
        ("mpich", "0,1,1,0", "2", 30),
        pytest.param("openmpi", "0,1,2", "1", 20, marks=pytest.mark.rare),
    ],
    ids=["round-robin", "unequal", "two-leaders", "a-rank-each"],
)
def test_random_calls_between_hosts_give_what_mpi4py_and_numpy_give(
    mpirun: Start, mpi: str, hosts: str, leaders: str, calls: int
) -> None:
    found = mpirun(
        *(HERE / "on_hosts.py", hosts.count(",") + 1, hosts, str(CALLS)),
        *("hierarchical", "7", str(calls)),
        mpi=mpi,
        env={"HBMCOMM_LEADERS": leaders, "HBMCOMM_SEGMENT_BYTES": "64KiB"},
    )
    assert "hierarchical: alike" in found.output


@pytest.mark.rare  # a quarter of a minute
def test_entries_of_any_size_are_right_where_two_ranks_of_a_host_lead(mpirun: Start) -> None:
    arguments = ("0,1,0,1", str(CALLS.with_name("sizes.py")), "entries_of_any_size_by_hosts")
    output = mpirun(HERE / "on_hosts.py", 4, *arguments, env={"HBMCOMM_LEADERS": "2"}).output
    assert output.count("kept") == 4, output


def test_auto_takes_what_fits_the_ranks_of_each_communicator_and_the_threads_of_mpi(
    mpirun: Start,
) -> None:
    program, threads = str(HERE / "auto.py"), {"MPI4PY_RC_THREAD_LEVEL": "serialized"}
    found = mpirun(HERE / "on_hosts.py", 4, "0,1,0,2", program, mpi="mpich", env=threads)
    assert found.output.count("fits") == 4


def test_random_programs_between_hosts_are_right(mpirun: Start, tmp_path: Path) -> None:
    program, seed = (
        str(CALLS.with_name("random_programs.py")),
        os.environ.get("HBMCOMM_TEST_SEED", "1"),
    )
    arguments = (program, "hierarchical", "3", seed, str(tmp_path))
    # a rank that leaves by an error is lost to other hosts; many communicators take long to make
    without = {"HBMCOMM_TEST_WITHOUT": "errors,late_objects,many_in_flight"}
    ended = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", *arguments, env=without)
    assert "calls right on 4 ranks" in ended.output, f"seed {seed}: {ended.output}"


def test_reductions_give_the_same_bits_on_all_ranks_and_in_every_run(mpirun: Start) -> None:
    digests = []
    for mpi in ("openmpi", "mpich"):
        found = mpirun(HERE / "on_hosts.py", 4, "0,1,2,0", str(HERE / "same_bits.py"), mpi=mpi)
        digests += [line for line in found.output.splitlines() if line.startswith("digest ")]
    assert len(digests) == 8 and len(set(digests)) == 1


@pytest.mark.parametrize(("mpi", "nbytes"), [("openmpi", 8), ("mpich", 4 * 2**20)])
def test_ranks_that_call_different_collectives_get_an_error(
    mpirun: Start, mpi: str, nbytes: int
) -> None:
    program = (HERE / "on_hosts.py", 4, "0,1,0,1", str(HERE / "differing.py"), str(nbytes))
    found = mpirun(*program, mpi=mpi, code=None)
    errors = [line for line in found.output.splitlines() if "after " in line]
    assert len(errors) == 4, found.output
    assert any("CallMismatch: ranks called different" in line for line in errors), errors
    assert all("unusable now" in line for line in errors)


def test_what_mpi_refuses_leaves_the_communicator_usable(mpirun: Start) -> None:
    found = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", str(HERE / "refused.py"), mpi="mpich")
    assert found.output.count("usable") == 4


def test_an_error_with_a_call_in_flight_ends_the_calls_of_all(mpirun: Start) -> None:
    found = mpirun(HERE / "on_hosts.py", 4, "0,1,0,1", str(HERE / "given_up.py"), code=None)
    assert found.output.count(" ended: ") == 4, found.output
    assert "its request: this communicator is unusable since" in found.output


def test_the_same_calls_in_other_words_do_not_differ_and_ranks_may_leave_after_theirs(
    mpirun: Start,
) -> None:
    found = mpirun(HERE / "on_hosts.py", 4, "0,1,0,2", str(HERE / "late.py"), mpi="mpich")
    assert found.output.count("alike") == 4
