"""Transport direct refuses what would go wrong, with an error on every rank and never a hang."""

from pathlib import Path

import pytest

from tests.left import nothing_left
from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.rare), 3])
def test_ranks_that_call_different_things_all_get_an_error_that_names_both(
    mpirun: Start, ranks: int
) -> None:
    found = mpirun(PROGRAMS / "direct_mismatch.py", ranks, "direct")
    assert found.output.count("named both") == ranks


def test_ranks_that_wait_for_each_other_are_named_after_a_timeout(mpirun: Start) -> None:
    assert mpirun(PROGRAMS / "late.py", 2).output.count("named the rank") == 2


@pytest.mark.parametrize(
    ("transport", "handler", "way"),
    [
        ("direct", "ERRORS_ARE_FATAL", "blocking"),
        ("direct", "ERRORS_ABORT", "Wait"),
        ("hierarchical", "ERRORS_ARE_FATAL", "lower case"),
    ],
)
def test_a_fatal_error_handler_ends_the_job_with_the_message(
    mpirun: Start, transport: str, handler: str, way: str
) -> None:
    found = mpirun(PROGRAMS / "fatal.py", 2, transport, handler, way, code=None)
    assert found.code != 0
    assert "went on" not in found.output
    assert "ranks called different collectives" in found.output


@pytest.mark.parametrize("mpi", ["openmpi", pytest.param("mpich", marks=pytest.mark.rare), "impi"])
def test_threads_forks_signals_and_careless_ends_do_no_harm(mpirun: Start, mpi: str) -> None:
    with nothing_left("hbmcomm.*"):
        found = mpirun(PROGRAMS / "direct_misuse.py", 3, "direct", mpi=mpi)
    assert found.output.count("kept") == 3


def test_garbage_in_a_control_block_is_an_error_with_a_text(mpirun: Start) -> None:
    found = mpirun(PROGRAMS / "garbage.py", 2)
    assert found.output.count("; the communicator is unusable now") == 12, found.output


def test_methods_in_c_take_arguments_as_python_does_and_keep_no_reference(mpirun: Start) -> None:
    assert mpirun(PROGRAMS / "methods.py", 2).output.count("called in all ways") == 2
