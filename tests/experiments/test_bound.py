"""The least traffic of each operation."""

import pytest

from experiments import bound
from experiments.spec import OPERATIONS


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("ranks", [2, 3, 16])
def test_every_operation_reads_each_input_and_writes_each_output_once(
    operation: str, ranks: int
) -> None:
    n = ranks
    reads = {"bcast": 1, "gather": n, "allreduce": n, "reduce": n, "scatter": n, "allgather": n}
    reads |= {"reduce_scatter": n * n, "alltoall": n * n}
    writes = {
        "bcast": n - 1,
        "gather": n,
        "allreduce": n,
        "reduce": 1,
        "scatter": n,
        "allgather": n * n,
        "reduce_scatter": n,
        "alltoall": n * n,
    }
    assert bound.traffic(operation, ranks) == reads[operation] + writes[operation]


def test_a_copy_by_all_ranks_bounds_itself() -> None:
    assert bound.least_seconds(bound.COPY, 4, 3e-6) == pytest.approx(3e-6)


def test_a_barrier_moves_nothing() -> None:
    assert bound.traffic(bound.BARRIER, 8) == 0


def test_one_rank_has_nothing_to_broadcast() -> None:
    assert bound.least_seconds("bcast", 1, 1.0) == 0
