"""Transport direct refuses what would go wrong, with an error on every rank and never a hang."""

from pathlib import Path

import pytest

from tests.starting import Start

PROGRAMS = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


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
    job = mpirun(PROGRAMS / "fatal.py", 2, transport, handler, way, code=None)
    assert job.code != 0
    assert "went on" not in job.output
    assert "ranks called different collectives" in job.output
