"""The words on where pages are hide nothing."""

from typing import Any

from experiments.analysis.page_placement import PageMap, Panel
from experiments.model import quantities
from plots.figures import placement_map
from tests.launched import make_launch, page_maps

MIB = 2**20


def page_map(*launches: dict[str, Any]) -> PageMap:
    (only,) = page_maps(launches)
    return only


def panel(kind: str, placed: dict[int, dict[int, int]] | None = None) -> Panel:
    moved = {(kind, "local", rank): sizes for rank, sizes in (placed or {}).items()}
    (only,) = page_map(make_launch(kinds=(kind,), localities=("local",), placed=moved)).panels
    return only


def test_numbers_that_follow_each_other_are_a_span() -> None:
    spans = {(3, 1, 2, 8): "1–3, 8", (5,): "5", (): "none", (0, 2, 4): "0, 2, 4", (1, 1): "1"}
    assert {numbers: quantities.spans([*numbers]) for numbers in spans} == spans


def test_nearly_all_is_not_all_and_nearly_nothing_is_not_nothing() -> None:
    texts = {1.0: "100 %", 0.99999: "> 99.9 %", 0.125: "12.5 %", 0.0: "0 %", 1e-6: "< 0.1 %"}
    assert {share: quantities.share_text(share) for share in texts} == texts


def test_pages_where_they_were_asked_need_few_words() -> None:
    hbw = panel("hbw")
    assert placement_map.summary(hbw) == "100 % as asked, 100 % local"
    assert placement_map.splits(hbw) == []
    assert placement_map.alike(hbw) == ""


def test_interleaved_pages_are_reported_with_their_shares() -> None:
    interleaved = panel("hbw_interleave")
    assert placement_map.splits(interleaved) == ["every rank: 25 % each on 4–7"]
    assert placement_map.summary(interleaved) == "100 % as asked, 25 % local"


def test_a_rank_whose_pages_strayed_is_named_with_its_shares() -> None:
    strayed = panel("hbw_preferred", {3: {1: MIB // 2, 5: 3 * MIB // 2}})
    assert placement_map.summary(strayed) == "96.9 % as asked, 100 % local"
    assert placement_map.splits(strayed) == ["rank 3: 25 % on 1, 75 % on 5"]


def test_pages_on_no_node_are_reported() -> None:
    partial = panel("hbw_preferred", {0: {4: MIB}})
    assert placement_map.splits(partial) == ["rank 0: 50 % on 4, 50 % on no node"]
    assert placement_map.sentence(partial) == (
        "hbw_preferred, local: 93.8 % as asked, 93.8 % local; rank 1 on node 4; "
        "ranks 2–3 on node 5; ranks 4–5 on node 6; ranks 6–7 on node 7; "
        "rank 0: 50 % on 4, 50 % on no node."
    )


def test_pages_of_which_nothing_is_reported_are_no_success() -> None:
    launch = make_launch(kinds=("hbw",), localities=("local",))
    for rank in launch["ranks"][:2]:
        del rank["pools"][0]["bytes"]  # an older result does not say how many there are
        rank["pools"][0]["placement"] = {}
    (some,) = page_map(launch).panels
    assert placement_map.splits(some) == ["ranks 0–1: where pages were is not known"]
    assert "ranks 0–1: where pages were is not known." in placement_map.sentence(some)
    assert "node 4" not in placement_map.sentence(some)
    for rank in launch["ranks"][2:]:
        del rank["pools"][0]["bytes"]
        rank["pools"][0]["placement"] = {}
    (none,) = page_map(launch).panels
    assert placement_map.sentence(none) == "hbw, local: where pages were is not known."
    assert placement_map.answer(page_map(launch)) == (
        "8 ranks packed. hbw (local): where pages were is not known."
    )


def test_many_ways_of_splitting_refer_to_the_table() -> None:
    strayed = {rank: {0: (rank + 1) * MIB // 8, 4: 2 * MIB - (rank + 1) * MIB // 8}
               for rank in range(5)}  # fmt: skip
    shown = placement_map.splits(panel("hbw_preferred", strayed))
    assert len(shown) == placement_map.MOST_SPLITS
    assert shown[-1] == "3 others: see the table"


def test_launches_that_differ_are_named() -> None:
    usual = {"kinds": ("hbw_preferred",), "localities": ("local",)}
    moved = {("hbw_preferred", "local", 0): {0: 2 * MIB}}
    most, one = page_map(
        *(make_launch(block=n, **usual) for n in range(2)),
        make_launch(block=2, **usual, placed=moved),
    ).panels
    assert placement_map.alike(most) == "in 2 of 3 launches"
    assert placement_map.alike(one) == "in 1 of 3 launches (0002-vm-knl-snc4-flat)"
    docker = "vm-docker-knl-snc4-flat-tuned-one"
    host, inside = page_map(
        make_launch(**usual),
        make_launch(block=1, **usual),
        make_launch(arm=docker, **usual, placed=moved),
    ).panels
    assert placement_map.alike(host) == "in 2 of 3 launches (emulated knl-snc4-flat)"
    assert "(Docker in emulated knl-snc4-flat, tuned, one container)" in placement_map.alike(inside)


def test_a_place_is_reported_in_a_sentence() -> None:
    moved = {("hbw_preferred", "local", 0): {0: 2 * MIB}}
    local_map = page_map(
        make_launch(kinds=("hbw", "hbw_preferred"), localities=("local",), placed=moved)
    )
    assert placement_map.answer(local_map) == (
        "8 ranks packed. hbw (local): 100 % as asked, 100 % local; "
        "hbw_preferred (local): 87.5 % as asked, 100 % local."
    )
    assert placement_map.ranks_at(local_map).startswith(
        "node 0 ranks 0–1 on CPUs 0–1; node 1 ranks 2–3"
    )
    assert placement_map.sentence(local_map.panels[0]).startswith(
        "hbw, local: 100 % as asked, 100 % local; ranks 0–1 on node 4; ranks 2–3 on node 5;"
    )
