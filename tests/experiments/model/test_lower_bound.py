"""The least traffic of each operation."""

import math

import pytest

from experiments.model import lower_bound
from experiments.model.launch import OPERATIONS
from tests.hbmcomm.hierarchical.steps import algorithm


def test_every_operation_reads_each_input_and_writes_each_output_once() -> None:
    for n in (2, 3, 16):
        reads_and_writes = {
            "bcast": (1, n - 1),
            "gather": (n, n),
            "allreduce": (n, n),
            "reduce": (n, 1),
            "scatter": (n, n),
            "allgather": (n, n * n),
            "reduce_scatter": (n * n, n),
            "alltoall": (n * n, n * n),
        }
        for operation in OPERATIONS:
            assert lower_bound.traffic(operation, n) == sum(reads_and_writes[operation]), operation


def test_a_copy_bounds_itself_and_what_moves_nothing_takes_no_time() -> None:
    assert lower_bound.least_seconds(lower_bound.COPY, 4, 3e-6) == pytest.approx(3e-6)
    assert lower_bound.least_seconds(lower_bound.BARRIER, 8, 1.0) == 0
    assert lower_bound.least_seconds("bcast", 1, 1.0) == 0


def test_the_bus_bandwidth_counts_the_largest_buffer_as_nccl_tests_do() -> None:
    for operation, buffers, factor in (
        ("allreduce", 1, 2 * 3 / 4),
        ("allgather", 4, 3 / 4),
        ("reduce_scatter", 4, 3 / 4),
        ("bcast", 1, 1),
        ("reduce", 1, 1),
        ("gather", 4, 1),
    ):
        expected = pytest.approx(buffers * factor)
        assert lower_bound.bus_bytes(operation, 4) == expected, operation
    assert math.isnan(lower_bound.bus_bytes(lower_bound.COPY, 4))


def test_the_busiest_link_carries_what_one_host_has_and_another_needs() -> None:
    for operation, even, uneven in (
        ("bcast", 1, 1),
        ("reduce", 1, 1),
        ("gather", 6, 3),  # to rank 0 of the first host, from all ranks elsewhere
        ("scatter", 6, 3),
        ("allgather", 6, 3),  # to the host with the fewest ranks, from all others
        ("reduce_scatter", 6, 3),
        ("alltoall", 12, 3),  # each rank of a host with each rank elsewhere
        ("barrier", 0, 0),
    ):
        carried = [lower_bound.wire_bytes(operation, on) for on in ((2, 2, 2, 2), (1, 3), (4,))]
        assert carried == [even, uneven, 0], operation


def test_an_allreduce_carries_what_each_host_of_a_ring_sends() -> None:
    count = 120
    for hosts in (2, 3, 4, 8):
        for host in range(hosts):
            steps = algorithm("RING")(host, hosts, count)
            sent = sum(end - begin for step in steps for _, (begin, end) in step.sends)
            assert sent == lower_bound.wire_bytes("allreduce", [2] * hosts) * count, hosts


def test_a_megabyte_takes_eight_milliseconds_of_a_gigabit_link() -> None:
    assert lower_bound.least_wire_seconds("bcast", (2, 2), 10**6, 1e9) == pytest.approx(8e-3)
    assert math.isnan(lower_bound.least_wire_seconds("ddp_step", (2, 2), 10**6, 1e9))
