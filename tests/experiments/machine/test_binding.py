"""Which CPU each rank gets."""

from experiments.machine.binding import cpu_of, first_threads_first

QUADRANTS = {0: [0, 1], 1: [2, 3], 2: [], 3: [4, 5]}


def test_packed_ranks_fill_a_node_spread_ones_are_dealt_out_and_both_begin_again() -> None:
    for binding, nodes, cpus in (
        ("packed", QUADRANTS, [0, 1, 2, 3, 4, 5, 0, 1]),
        ("spread", QUADRANTS, [0, 2, 4, 1, 3, 5, 0, 2]),
        ("spread", {0: [0], 1: [1, 2, 3]}, [0, 1, 2, 3]),
    ):
        assert [cpu_of(rank, binding, nodes) for rank in range(len(cpus))] == cpus


def test_every_core_gets_a_rank_before_any_gets_two() -> None:
    neighbours = {0: {0, 1}, 1: {0, 1}, 2: {2, 3}, 3: {2, 3}}
    assert first_threads_first(range(4), neighbours) == (0, 2, 1, 3)
    apart = {cpu: {cpu % 3, cpu % 3 + 3, cpu % 3 + 6} for cpu in range(9)}
    assert first_threads_first(range(9), apart) == tuple(range(9))
    apart = {cpu: {cpu % 4, cpu % 4 + 4} for cpu in range(8)}
    assert first_threads_first([1, 5, 6], apart) == (1, 6, 5), "the first that may be used"
    assert first_threads_first([3, 1, 2], {}) == (1, 2, 3), "nothing is known of its neighbours"
