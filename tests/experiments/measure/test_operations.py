"""What operations leave is checked to the element; the pattern shows shifts and old data."""

from pathlib import Path

import numpy as np
import pytest

from experiments.measure import operations
from tests.starting import Start

RANKS = Path(__file__).parents[1] / "ranks"


@pytest.mark.ranks
def test_right_results_pass_and_every_spoilt_element_row_or_rank_is_counted(mpirun: Start) -> None:
    mpirun(RANKS / "wrong_results.py", 3)


def test_sums_over_many_ranks_stay_exact() -> None:
    ranks = 272
    largest = ranks * (operations.PERIOD + 97)
    for dtype in (np.float32, np.float64, np.int32, np.int64):
        assert dtype(largest) == largest
        assert dtype(largest) + dtype(1) != largest, dtype


def test_consecutive_iterations_and_ranks_write_different_data() -> None:
    pattern = operations.ramp(10, "float32")
    written = set()
    for rank in range(4):
        for iteration in range(3):
            send = np.empty(10, "float32")
            operations.fill(send, pattern, rank, iteration)
            written.add(send.tobytes())
    assert len(written) == 12
