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
    found = groups(reach)
    assert sorted(rank for ranks in found for rank in ranks) == list(range(len(hosts)))
    assert all(len({hosts[rank] for rank in ranks}) == 1 for ranks in found)
    assert len(found) == len(set(hosts))


def test_the_first_ranks_of_all_numa_nodes_lead_before_the_second_ones() -> None:
    assert in_order_of_leading([3, 4, 5, 6], {3: 0, 4: 0, 5: 1, 6: 1}) == (3, 5, 4, 6)


def test_the_smallest_host_limits_the_leaders() -> None:
    assert Layout(ROUND_ROBIN, 3, 3, ONE_NODE).leaders == 2


def test_a_leader_has_a_counterpart_of_its_number_on_each_host() -> None:
    lane = Layout(ROUND_ROBIN, 3, 2, ONE_NODE).lane()
    assert (lane.number, lane.peers, lane.inside) == (1, (2, 3), (0, 1))


def test_the_root_of_a_call_is_the_first_leader_of_its_host() -> None:
    lane = Layout(ROUND_ROBIN, 4, 1, ONE_NODE).lane(root=4)
    assert (lane.number, lane.peers, lane.inside) == (0, (4, 1), (2,))
    assert Layout(ROUND_ROBIN, 0, 1, ONE_NODE).lane(root=4).number is None


@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.integers(1, 4), st.data())
def test_all_ranks_agree_on_who_leads(hosts: list[int], leaders: int, data: st.DataObject) -> None:
    found = groups([{o for o, host in enumerate(hosts) if host == own} for own in hosts])
    root = data.draw(st.none() | st.integers(0, len(hosts) - 1))
    nodes = {rank: rank % 2 for rank in range(len(hosts))}
    lanes = [Layout(found, rank, leaders, nodes).lane(root) for rank in range(len(hosts))]
    leading = {rank: lane for rank, lane in enumerate(lanes) if lane.number is not None}
    for rank, lane in leading.items():
        assert rank in lane.peers and len(lane.peers) == len(found)
        assert all(leading[peer].peers == lane.peers for peer in lane.peers)
    assert root is None or root in leading
