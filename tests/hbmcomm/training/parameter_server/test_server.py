"""Weights of a parameter server on real ranks."""

from pathlib import Path

import pytest

from tests.starting import Start

RANKS = Path(__file__).parent / "ranks"

pytestmark = pytest.mark.ranks


def test_every_design_and_order_of_jobs_has_the_serial_optimisers_bits(mpirun: Start) -> None:
    assert mpirun(RANKS / "steps.py", 4).output.count("all steps are right") == 1


def test_memory_of_a_dropped_job_stays_while_slower_ranks_may_copy_from_it(mpirun: Start) -> None:
    assert "rank 0: all memory stays" in mpirun(RANKS / "left.py", 2).output
