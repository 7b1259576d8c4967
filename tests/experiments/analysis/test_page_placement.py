"""Launches alike share a map; one that differs is never left out."""

import json
from pathlib import Path

import pytest

import hbmcomm
from experiments.analysis.page_placement import Node, PageMap, by_node, owners
from experiments.emulation import description
from experiments.machine import facts as measured
from experiments.model.environment import machine_names
from hbmcomm.memory import topology as library
from tests.experiments.emulation.kernel_view import nodes_as_shown
from tests.launched import make_launch, page_maps, page_rows

MIB = 2**20
PREFERRED = {"kinds": ("hbw_preferred",), "localities": ("local",)}
SPOT = ("hbw_preferred", "local")
SPILT = {(*SPOT, 3): {3: MIB, 5: MIB}}


def only(maps: tuple[PageMap, ...]) -> PageMap:
    (page_map,) = maps
    return page_map


def test_arms_that_are_alike_share_a_map() -> None:
    arms = ("vm-docker-knl-snc4-flat-tuned-one", "vm-knl-snc4-flat")
    page_map = only(
        page_maps([make_launch(arm=arm, block=block) for arm in arms for block in range(3)])
    )
    assert page_map.arms == ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one")
    assert len(page_map.launches) == 6
    assert page_map.machine == "knl-snc4-flat (tcg)"
    assert page_map.cpus == tuple(range(8))
    assert [page_map.node_of(rank) for rank in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    kinds = [(panel.kind, panel.locality) for panel in page_map.panels]
    assert kinds == [(k, where) for k in ("regular", "hbw") for where in ("local", "remote")]
    assert {len(panel.launches) for panel in page_map.panels} == {6}


def test_every_byte_of_every_rank_is_on_the_map() -> None:
    page_map = only(page_maps([make_launch()]))
    for panel in page_map.panels:
        assert sum(by_node(panel).values()) == 8 * 2 * MIB
        assert {pages.as_asked for pages in panel.pages} == {1.0}
    local = next(p for p in page_map.panels if (p.kind, p.locality) == ("hbw", "local"))
    assert [dict(pages.shares) for pages in local.pages] == [{4 + r // 2: 1.0} for r in range(8)]


def test_other_ranks_bindings_and_machines_have_maps_of_their_own() -> None:
    for other in ({"ranks": 4}, {"binding": "spread"}, {"machine": "plain"}):
        assert len(page_maps([make_launch(), make_launch(**other)])) == 2, other


def test_a_rank_on_another_cpu_makes_another_map() -> None:
    moved = make_launch(block=2)
    moved["ranks"][0]["cpu"] = 1
    usual, other = page_maps([make_launch(block=0), make_launch(block=1), moved])
    assert (len(usual.launches), len(other.launches)) == (2, 1)
    assert other.cpus[0] == 1


def test_a_launch_whose_pages_differ_has_a_panel_of_its_own() -> None:
    launches = [
        make_launch(block=n, **PREFERRED, placed=SPILT if n == 1 else None) for n in range(3)
    ]
    most, one = only(page_maps(launches)).panels
    assert (len(most.launches), len(one.launches)) == (2, 1)
    assert one.launches == ("0001-vm-knl-snc4-flat",)
    assert one.of == most.of == 3
    assert one.pages[3].as_asked == 0.5
    assert one.pages[3].shares == ((3, 0.5), (5, 0.5))


def test_a_page_more_or_less_makes_no_other_panel_but_another_row() -> None:
    few = {("hbw_preferred", "local", 3): {5: 2 * MIB - 4096, 3: 4096}}
    launches = [make_launch(block=n, **PREFERRED, placed=few if n else None) for n in range(2)]
    rows = page_rows(launches)
    assert len(rows) == 8 + 1
    mine = rows[rows["rank"] == 3]
    assert set(mine["placed"]) == {f"5: {2 * MIB}", f"3: 4096; 5: {2 * MIB - 4096}"}
    assert set(mine["launches"]) == {1}
    assert len(only(page_maps(launches)).panels) == 2, "whole is not nearly whole"


def test_of_launches_alike_to_a_per_cent_the_worst_is_shown() -> None:
    for order in ((1, 2, 3), (3, 2, 1), (2, 3, 1)):
        moved = {n: {(*SPOT, 3): {5: 2 * MIB - n * 3000, 3: n * 3000}} for n in order}
        launches = [make_launch(block=n, **PREFERRED, placed=moved[n]) for n in order]
        (panel,) = only(page_maps(launches)).panels
        assert len(panel.launches) == 3, order
        assert panel.as_asked == pytest.approx(1 - 9000 / (16 * MIB)), order
        assert panel.pages[3].placed == ((3, 9000), (5, 2 * MIB - 9000)), order


def test_local_is_the_node_of_the_cpu_and_what_stands_beside_it() -> None:
    page_map = only(page_maps([make_launch("xeon-max-flat-snc4", ranks=16)]))
    for panel in page_map.panels:
        for rank, pages in enumerate(panel.pages):
            assert pages.near == (rank // 2, rank // 2 + 8)
            assert pages.local == (1.0 if panel.locality == "local" else 0.0)


def shown(*nodes: library.Node) -> library.Topology:
    return library.Topology(nodes, (), (), (), "", library.HbmFinding((), "", (), False))


def lacking(number: int, cpus: tuple[int, ...], size: int, near: tuple[int, ...]) -> library.Node:
    far = {other: 10 + 10 * (other != number) for other in range(5)}
    return library.Node(number, cpus, size, size, size, far, near)


LACKING = shown(
    lacking(0, (0,), 2**30, ()),
    lacking(1, (1,), 0, ()),
    lacking(2, (), 2**30, (4,)),
    lacking(3, (), 2**30, ()),
    lacking(4, (), 2**30, (1, 4)),
)
"""With CPUs without memory, memory that only a GPU reaches well, one as near to two nodes."""
EMULATED = {
    f"{name}{', HBM online' * online}": shown(*nodes_as_shown(description.load(name), online))
    for name in machine_names()
    for online in (False, True)
}


def test_memory_is_local_although_nodes_lack_something() -> None:
    assert [LACKING.local_nodes(number) for number in (0, 1)] == [(0, 3), (3, 4)]


def test_local_is_what_the_library_calls_local_on_every_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, topology in (EMULATED | {"lacking": LACKING}).items():
        monkeypatch.setattr(hbmcomm, "topology", lambda *_, shown=topology: shown)
        cpus = [cpu for node in topology.nodes for cpu in node.cpus]
        launch = make_launch("sixty-four", ranks=len(cpus), kinds=("regular",))
        launch["environment"]["topology"] = measured.nodes()
        for rank, cpu in zip(launch["ranks"], cpus, strict=True):
            rank["cpu"] = cpu
        page_map = only(page_maps([launch]))
        for rank, cpu in enumerate(cpus):
            home = topology.node_of_cpu(cpu)
            assert page_map.node_of(rank) == home, name
            assert page_map.panels[0].pages[rank].near == topology.local_nodes(home), name
        homes = [node for node in page_map.nodes if node.cpus]
        for node in page_map.nodes:
            best = [home.id for home in homes if node.id in topology.local_nodes(home.id)]
            if not node.cpus and best:
                assert owners(node, homes) == best, name


def node(
    number: int, distances: dict[int, int], cpus: tuple[int, ...] = (), near: tuple[int, ...] = ()
) -> Node:
    return Node(number, cpus, 2**30, tuple(distances.items()), near, not cpus)


def test_memory_belongs_to_the_nodes_that_it_serves_best() -> None:
    homes = [node(0, {0: 10, 1: 20}, (0,)), node(1, {0: 20, 1: 10}, (1,))]
    for memory, nearest in (
        (node(2, {0: 11, 1: 30}, near=(1,)), [1]),  # HMAT counts more than distances
        (node(2, {0: 11, 1: 30}), [0]),
        (node(2, {0: 30, 1: 30}), [0, 1]),
    ):
        assert owners(memory, homes) == nearest


def test_bytes_on_no_node_are_counted_as_not_where_asked() -> None:
    launch = make_launch(ranks=1, placed={("regular", "local", 0): {0: MIB}}, localities=("local",))
    first = only(page_maps([launch])).panels[0].pages[0]
    assert (first.unknown, first.total, first.as_asked) == (MIB, 2 * MIB, 0.5)
    del launch["ranks"][0]["pools"][0]["bytes"]  # an older result does not say how many there are
    assert only(page_maps([launch])).panels[0].pages[0].unknown == 0


def test_what_was_not_measured_has_a_panel_with_the_reason() -> None:
    page_map = only(page_maps([make_launch("plain", ranks=2, skipped="no HBM")]))
    assert [panel.skipped for panel in page_map.panels] == ["", "", "no HBM", "no HBM"]
    assert page_map.panels[2].pages == ()


def test_what_a_guest_with_hbm_nodes_recorded_is_one_map_of_both_arms() -> None:
    """Two launches as QEMU's guest left them, on its bare metal and in Docker there."""
    launches = json.loads((Path(__file__).parent / "guest.json").read_text())
    page_map = only(page_maps(launches))
    assert page_map.arms == ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one")
    assert page_map.cpus == (0, 2, 4, 6) and page_map.binding == "spread"
    assert page_map.methods == ("move_pages",)
    panels = {(panel.kind, panel.locality): panel for panel in page_map.panels}
    assert (
        {panel.of for panel in page_map.panels} == {2} == {len(p.launches) for p in page_map.panels}
    )
    for rank in range(4):
        assert panels["regular", "local"].pages[rank].shares == ((rank, 1.0),)
        assert panels["hbw", "local"].pages[rank].shares == ((rank + 4, 1.0),)
    assert all(pages.local == 0 for pages in panels["hbw", "remote"].pages)
    assert all(pages.as_asked == 1 for panel in page_map.panels for pages in panel.pages)
    assert len(page_rows(launches)) == 2 * 4 * 4


def test_a_row_says_who_where_what_was_asked_and_what_was_found() -> None:
    rows = page_rows([make_launch(block=block, **PREFERRED, placed=SPILT) for block in range(2)])
    assert len(rows) == 8
    row = rows[rows["rank"] == 3].iloc[0].to_dict()
    assert row == (
        {"arm": "vm-knl-snc4-flat", "mpi": "openmpi", "ranks": 8, "binding": "packed", "rank": 3}
        | {"cpu": 3, "cpu_node": 1, "kind": "hbw_preferred", "locality": "local", "of": 2}
        | {"emulated": False, "asked": "5", "placed": f"3: {MIB}; 5: {MIB}", "launches": 2}
        | {"pages_bytes": 2 * MIB, "as_asked": 0.5, "local": 0.5, "method": "move_pages"}
        | {"names": "0000-vm-knl-snc4-flat, 0001-vm-knl-snc4-flat"}
        | {"emulated_machine": "knl-snc4-flat (tcg)"}
    )


def test_older_results_and_programs_that_tell_no_pages_fill_no_map() -> None:
    old, silent = make_launch(), make_launch()
    del old["environment"]["topology"], old["environment"]["machine"]
    for rank in silent["ranks"]:
        rank["pools"] = []
    assert page_maps([old, silent]) == ()
    assert page_rows([old, silent]).empty
