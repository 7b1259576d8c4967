"""Which CPU each rank gets."""

from experiments.measure.binding import cpu_of

QUADRANTS = {0: [0, 1], 1: [2, 3], 2: [], 3: [4, 5]}


def test_packed_ranks_fill_one_node_before_the_next() -> None:
    assert [cpu_of(rank, "packed", QUADRANTS) for rank in range(6)] == [0, 1, 2, 3, 4, 5]


def test_spread_ranks_are_dealt_out_over_the_nodes() -> None:
    assert [cpu_of(rank, "spread", QUADRANTS) for rank in range(6)] == [0, 2, 4, 1, 3, 5]


def test_more_ranks_than_cpus_begin_again() -> None:
    assert cpu_of(6, "packed", QUADRANTS) == 0
    assert cpu_of(7, "spread", QUADRANTS) == 2


def test_nodes_of_different_width_are_all_used() -> None:
    uneven = {0: [0], 1: [1, 2, 3]}
    assert [cpu_of(rank, "spread", uneven) for rank in range(4)] == [0, 1, 2, 3]
