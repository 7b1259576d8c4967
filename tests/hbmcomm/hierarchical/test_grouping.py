"""Which ranks are a host, and which of them lead."""

from hypothesis import given
from hypothesis import strategies as st

from hbmcomm.hierarchical.grouping import Layout, groups, in_order_of_leading

ROUND_ROBIN = [(0, 2, 4), (1, 3)]
ONE_NODE = dict.fromkeys(range(5), 0)


def test_a_rank_that_one_of_a_host_cannot_map_is_another_host() -> None:
    assert groups([{0, 1, 2}, {0, 1}, {0, 1, 2}]) == [(0, 1), (2,)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=12))
def test_hosts_of_any_placement_are_found(hosts: list[int]) -> None:
    reach = [{other for other, host in enumerate(hosts) if host == own} for own in hosts]
    grouped = groups(reach)
    assert sorted(rank for ranks in grouped for rank in ranks) == list(range(len(hosts)))
    assert all(len({hosts[rank] for rank in ranks}) == 1 for ranks in grouped)
    assert len(grouped) == len(set(hosts))


def test_the_first_ranks_of_all_numa_nodes_lead_before_the_second_ones() -> None:
    assert in_order_of_leading([3, 4, 5, 6], {3: 0, 4: 0, 5: 1, 6: 1}) == (3, 5, 4, 6)


def test_the_smallest_host_limits_the_leaders() -> None:
    assert Layout(ROUND_ROBIN, 3, 3, ONE_NODE).leaders == 2


def test_ranks_lead_in_the_order_of_their_hosts() -> None:
    assert Layout(ROUND_ROBIN, 3, 2, ONE_NODE).leading == (0, 2, 4, 1, 3)
