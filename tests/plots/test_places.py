"""Launches alike share a map; one that differs is never left out."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plots.places import Place, by_node, frame, places

Launched = Callable[..., dict[str, Any]]
MIB = 2**20
PREFERRED = {"kinds": ("hbw_preferred",), "localities": ("local",)}
SPILT = {("hbw_preferred", "local", 3): {3: MIB, 5: MIB}}


def only(found: tuple[Place, ...]) -> Place:
    (place,) = found
    return place


def test_arms_that_are_alike_share_a_map(launched: Launched) -> None:
    arms = ("vm-docker-knl-snc4-flat-tuned-one", "vm-knl-snc4-flat")
    place = only(places([launched(arm=arm, block=block) for arm in arms for block in range(3)]))
    assert place.arms == ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one")
    assert len(place.launches) == 6
    assert place.machine == "knl-snc4-flat (tcg)"
    assert place.cpus == tuple(range(8))
    assert [place.node_of(rank) for rank in range(8)] == [0, 0, 1, 1, 2, 2, 3, 3]
    kinds = [(panel.kind, panel.locality) for panel in place.panels]
    assert kinds == [(k, where) for k in ("regular", "hbw") for where in ("local", "remote")]
    assert {len(panel.launches) for panel in place.panels} == {6}


def test_every_byte_of_every_rank_is_on_the_map(launched: Launched) -> None:
    place = only(places([launched()]))
    for panel in place.panels:
        assert sum(by_node(panel).values()) == 8 * 2 * MIB
        assert {each.as_asked for each in panel.pages} == {1.0}
    local = next(p for p in place.panels if (p.kind, p.locality) == ("hbw", "local"))
    assert [dict(each.shares) for each in local.pages] == [{4 + r // 2: 1.0} for r in range(8)]


@pytest.mark.parametrize("other", [{"ranks": 4}, {"binding": "spread"}, {"machine": "plain"}])
def test_other_ranks_bindings_and_machines_have_maps_of_their_own(
    launched: Launched, other: dict[str, Any]
) -> None:
    assert len(places([launched(), launched(**other)])) == 2


def test_a_rank_on_another_cpu_makes_another_map(launched: Launched) -> None:
    moved = launched(block=2)
    moved["ranks"][0]["cpu"] = 1
    usual, other = places([launched(block=0), launched(block=1), moved])
    assert (len(usual.launches), len(other.launches)) == (2, 1)
    assert other.cpus[0] == 1


def test_a_launch_whose_pages_differ_has_a_panel_of_its_own(launched: Launched) -> None:
    launches = [launched(block=n, **PREFERRED, placed=SPILT if n == 1 else None) for n in range(3)]
    most, one = only(places(launches)).panels
    assert (len(most.launches), len(one.launches)) == (2, 1)
    assert one.launches == ("0001-vm-knl-snc4-flat",)
    assert one.of == most.of == 3
    assert one.pages[3].as_asked == 0.5
    assert one.pages[3].shares == ((3, 0.5), (5, 0.5))


def test_a_page_more_or_less_makes_no_other_panel_but_another_row(launched: Launched) -> None:
    few = {("hbw_preferred", "local", 3): {5: 2 * MIB - 4096, 3: 4096}}
    launches = [launched(block=n, **PREFERRED, placed=few if n else None) for n in range(2)]
    rows = frame(launches)
    assert len(rows) == 8 + 1
    mine = rows[rows["rank"] == 3]
    assert set(mine["placed"]) == {f"5: {2 * MIB}", f"3: 4096; 5: {2 * MIB - 4096}"}
    assert set(mine["launches"]) == {1}
    assert len(only(places([launched(**PREFERRED, placed=few)])).panels) == 1


def test_local_is_the_node_of_the_cpu_and_what_stands_beside_it(launched: Launched) -> None:
    place = only(places([launched("xeon-max-flat-snc4", ranks=16)]))
    for panel in place.panels:
        for rank, each in enumerate(panel.pages):
            assert each.near == (rank // 2, rank // 2 + 8)
            assert each.local == (1.0 if panel.locality == "local" else 0.0)


def test_bytes_on_no_node_are_counted_as_not_where_asked(launched: Launched) -> None:
    launch = launched(ranks=1, placed={("regular", "local", 0): {0: MIB}}, localities=("local",))
    pages = only(places([launch])).panels[0].pages[0]
    assert (pages.unknown, pages.total, pages.as_asked) == (MIB, 2 * MIB, 0.5)
    del launch["ranks"][0]["pools"][0]["bytes"]  # an older result does not say how many there are
    assert only(places([launch])).panels[0].pages[0].unknown == 0


def test_what_was_not_measured_has_a_panel_with_the_reason(launched: Launched) -> None:
    place = only(places([launched("plain", ranks=2, skipped="no HBM")]))
    assert [panel.skipped for panel in place.panels] == ["", "", "no HBM", "no HBM"]
    assert place.panels[2].pages == ()


def test_what_a_guest_with_hbm_nodes_recorded_is_one_map_of_both_arms() -> None:
    """Two launches as QEMU's guest left them, on its bare metal and in Docker there."""
    launches = json.loads((Path(__file__).parent / "guest.json").read_text())
    place = only(places(launches))
    assert place.arms == ("vm-knl-snc4-flat", "vm-docker-knl-snc4-flat-tuned-one")
    assert place.cpus == (0, 2, 4, 6) and place.binding == "spread"
    assert place.methods == ("move_pages",)
    told = {(panel.kind, panel.locality): panel for panel in place.panels}
    assert {panel.of for panel in place.panels} == {2} == {len(p.launches) for p in place.panels}
    for rank in range(4):
        assert told["regular", "local"].pages[rank].shares == ((rank, 1.0),)
        assert told["hbw", "local"].pages[rank].shares == ((rank + 4, 1.0),)
    assert all(each.local == 0 for each in told["hbw", "remote"].pages)
    assert all(each.as_asked == 1 for panel in place.panels for each in panel.pages)
    assert len(frame(launches)) == 2 * 4 * 4


def test_a_row_says_who_where_what_was_asked_and_what_was_found(launched: Launched) -> None:
    rows = frame([launched(block=block, **PREFERRED, placed=SPILT) for block in range(2)])
    assert len(rows) == 8
    row = rows[rows["rank"] == 3].iloc[0].to_dict()
    assert row == {
        "arm": "vm-knl-snc4-flat",
        "mpi": "openmpi",
        "ranks": 8,
        "binding": "packed",
        "rank": 3,
        "cpu": 3,
        "cpu_node": 1,
        "kind": "hbw_preferred",
        "locality": "local",
        "emulated": False,
        "asked": "5",
        "placed": f"3: {MIB}; 5: {MIB}",
        "pages_bytes": 2 * MIB,
        "as_asked": 0.5,
        "local": 0.5,
        "method": "move_pages",
        "launches": 2,
        "of": 2,
        "names": "0000-vm-knl-snc4-flat, 0001-vm-knl-snc4-flat",
        "emulated_machine": "knl-snc4-flat (tcg)",
    }


def test_older_results_and_programs_that_tell_no_pages_fill_no_map(launched: Launched) -> None:
    old, silent = launched(), launched()
    del old["environment"]["topology"], old["environment"]["machine"]
    for rank in silent["ranks"]:
        rank["pools"] = []
    assert places([old, silent]) == ()
    assert frame([old, silent]).empty
