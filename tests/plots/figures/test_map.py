"""The machine as a map: all nodes, all ranks, all pages, and every launch that differs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from plots.analysis.findings import Findings
from plots.analysis.page_placement import places
from plots.figures.map import NAME, placement_map
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.labels import EMULATED
from plots.layout.style import COLUMN_INCHES, DARK, KINDS, TEXT_POINTS, style

Find = Callable[..., Findings]
Launched = Callable[..., dict[str, Any]]
Mapped = Callable[..., list[Drawing]]
MIB = 2**20
WARNING = "Emulated machine x (tcg): where ranks and pages are is real, times mean nothing."


@pytest.fixture(scope="module")
def mapped(findings: Find) -> Mapped:
    """mapped(launch, ...): the drawings of these launches' places."""

    def drawn(*launches: dict[str, Any], machine: str = "") -> list[Drawing]:
        found = findings(blocks=1, sizes=(1024,), kinds=("regular",))
        with style():
            every = placement_map(replace(found, places=places(launches), machine=machine))
        assert all(isinstance(each, Drawing) for each in every)
        return [each for each in every if isinstance(each, Drawing)]

    return drawn


def texts(drawing: Drawing, panel: int | None = None) -> list[str]:
    """What is written, in a panel or on the whole page, lines joined."""
    whole = drawing.figure if panel is None else drawing.figure.axes[panel]
    return [text.get_text() for text in whole.findobj(Text) if text.get_text()]


def said(drawing: Drawing) -> str:
    return " ".join(texts(drawing))


def lines(drawing: Drawing, panel: int) -> int:
    """How many lines lead from ranks to nodes in a panel."""
    return len([p for p in drawing.figure.axes[panel].findobj(PathPatch) if type(p) is PathPatch])


def test_the_first_panel_holds_all_nodes_with_their_sizes_and_all_ranks_with_their_cpus(
    mapped: Mapped, launched: Launched
) -> None:
    (drawing,) = mapped(launched(binding="spread"))
    written = texts(drawing, 0)
    assert written.count("512 MiB") == 4 and written.count("1.5 GiB") == 4
    numbers = sorted(int(text) for text in written if text.isdigit())
    nodes, ranks, cpus = list(range(8)), list(range(8)), list(range(8))
    assert numbers == sorted(nodes + ranks + cpus)


def test_there_is_a_panel_for_each_kind_and_locality(mapped: Mapped, launched: Launched) -> None:
    (drawing,) = mapped(launched())
    titles = [axes.get_title(loc="left") for axes in drawing.figure.axes]
    assert titles[1:] == ["regular, local", "regular, remote", "hbw, local", "hbw, remote"]


def test_a_line_leads_from_each_rank_to_each_node_with_its_pages(
    mapped: Mapped, launched: Launched
) -> None:
    (drawing,) = mapped(launched(kinds=("hbw", "hbw_interleave"), localities=("local",)))
    assert [lines(drawing, panel) for panel in (1, 2)] == [8, 8 * 4]
    assert "every rank: 25 % each on 4–7" in said(drawing)


@pytest.mark.parametrize("to", ["0", "other row", "every"])
def test_no_line_is_lost_where_tiles_stand_in_rows(
    mapped: Mapped, launched: Launched, to: str
) -> None:
    """Tiles of two rows have the same middles: what is exactly above a rank is no less far."""
    of = {"0": lambda _: [0], "other row": lambda r: [(r + 8) % 16], "every": lambda _: range(16)}
    nodes = {rank: list(of[to](rank)) for rank in range(16)}
    strayed = {
        ("regular", "local", rank): dict.fromkeys(mine, 2 * MIB // len(mine))
        for rank, mine in nodes.items()
    }
    (drawing,) = mapped(
        launched(
            *("caches",),
            ranks=16,
            binding="spread",
            kinds=("regular",),
            localities=("local",),
            placed=strayed,
        )
    )
    assert lines(drawing, 1) == sum(map(len, nodes.values()))


def test_a_box_says_how_much_it_holds_and_fills_by_it(mapped: Mapped, launched: Launched) -> None:
    (drawing,) = mapped(launched(kinds=("hbw",), localities=("remote",)))
    axes = drawing.figure.axes[1]
    fills = [p for p in axes.patches if isinstance(p, Rectangle) and p.get_alpha()]
    widths = sorted(patch.get_width() for patch in fills)
    assert len(widths) == 2, "ranks of node 0 are farthest from 5, all others from 4"
    assert widths[0] / widths[1] == pytest.approx(2 / 6)
    assert {"12 MiB", "4 MiB"} <= set(texts(drawing, 1))


def test_hbm_and_nodes_with_cpus_have_colours_of_their_kinds(
    mapped: Mapped, launched: Launched
) -> None:
    (drawing,) = mapped(launched())
    boxes = [p for p in drawing.figure.axes[0].patches if type(p) is Rectangle]
    edges = [to_hex(box.get_edgecolor()) for box in boxes]
    assert edges.count(KINDS["hbw"].colour) == 4
    assert edges.count(KINDS["regular"].colour) == 4 + 4  # around the memory, and the whole node


def test_pages_that_strayed_and_launches_that_differ_are_on_the_map(
    mapped: Mapped, launched: Launched
) -> None:
    usual = {"kinds": ("hbw_preferred",), "localities": ("local",)}
    moved = {("hbw_preferred", "local", 3): {3: MIB, 5: MIB}}
    (drawing,) = mapped(
        *(launched(block=n, **usual, placed=moved if n == 1 else None) for n in range(3))
    )
    assert [axes.get_title(loc="left") for axes in drawing.figure.axes[1:]] == [
        "hbw_preferred, local"
    ] * 2
    told = said(drawing)
    assert "Not the same in all launches: hbw_preferred, local." in told
    assert "in 2 of 3 launches" in told and "93.8 % as asked" in told
    assert "rank 3: 50 % each on 3, 5" in told
    assert "rank 3: 50 % each on 3, 5" in drawing.description


def test_launches_with_ranks_elsewhere_refer_to_each_other(
    mapped: Mapped, launched: Launched
) -> None:
    moved = launched(block=1)
    moved["ranks"][0]["cpu"] = 1
    first, second = mapped(launched(), moved)
    assert (first.name, second.name) == (f"{NAME}-8-ranks-packed", f"{NAME}-8-ranks-packed-2")
    for drawing in (first, second):
        assert "1 launch has other nodes or CPUs: see that map too." in said(drawing)


def test_many_panels_are_spread_over_several_drawings(mapped: Mapped, launched: Launched) -> None:
    kinds = ("regular", "hbw", "hbw_all", "hbw_interleave", "hbw_preferred")
    drawn = mapped(launched("xeon-max-flat-snc4", ranks=16, kinds=kinds))
    assert [len(each.figure.axes) - 1 for each in drawn] == [4, 4, 2]
    assert len({each.name for each in drawn}) == 3
    assert max(each.figure.get_size_inches()[1] for each in drawn) < 9.5


def test_an_emulated_machine_and_emulated_hbm_are_alerts(
    mapped: Mapped, launched: Launched
) -> None:
    (drawing,) = mapped(launched(), machine=WARNING)
    assert "times mean nothing" in said(drawing) and EMULATED.split(":")[0] not in said(drawing)
    launch = launched("plain", ranks=2, kinds=("hbw",), emulated="")
    for rank in launch["ranks"]:
        for pool in rank["pools"]:
            pool["emulated"] = True
    (drawing,) = mapped(launch)
    assert EMULATED.split(":")[0] in said(drawing)


def test_the_words_name_every_node_rank_and_page(mapped: Mapped, launched: Launched) -> None:
    (drawing,) = mapped(launched("xeon-max-flat-snc4", ranks=16, binding="spread"))
    for node in range(8):
        assert f"node {node}, node with CPUs, 1.5 GiB, CPUs" in drawing.description
        assert f"ranks {node}, {node + 8} on node {node + 8}" in drawing.description


@pytest.mark.parametrize("named", ["", "hbw: "])
def test_what_was_not_measured_says_why_in_its_panel(
    mapped: Mapped, launched: Launched, named: str
) -> None:
    (drawing,) = mapped(launched("plain", ranks=2, skipped=f"{named}this machine has no HBM"))
    assert "Not measured. hbw: this machine has no HBM" in " ".join(texts(drawing, 3)).replace(
        "\n", " "
    )
    assert f"hbw, local: not measured: {named}this machine has no HBM." in drawing.description


def test_results_without_nodes_leave_the_map_out_with_the_reason(findings: Find) -> None:
    (left_out,) = placement_map(findings(blocks=1, sizes=(1024,)))
    assert isinstance(left_out, Skipped)
    assert left_out.reason == "no launch recorded the machine's nodes and where its pages are"


LAYOUTS: dict[str, dict[str, Any]] = {
    "one node": {"machine": "plain", "ranks": 2},
    "one node, one rank, no HBM": {"machine": "plain", "ranks": 1, "skipped": "no HBM " * 30},
    "four and four, packed": {"machine": "knl-snc4-flat"},
    "four and four, spread": {"machine": "knl-snc4-flat", "binding": "spread"},
    "more ranks than CPUs": {"machine": "knl-snc4-flat", "ranks": 32},
    "long names": {
        "machine": "knl-snc4-flat",
        "kinds": ("hbw_interleave", "highest_bandwidth_local"),
        "arm": "vm-docker-knl-snc4-flat-privileged-one",
    },
    "eight and eight": {"machine": "xeon-max-flat-snc4", "ranks": 16},
    "large buffers": {
        "machine": "xeon-max-flat-snc4",
        "ranks": 16,
        "localities": ("local",),
        "kinds": ("hbw",),
        "placed": {("hbw", "local", 0): {15: 250 * MIB}},
    },
    "sixteen nodes": {"machine": "caches", "ranks": 32},
    "sixty-four ranks on a node": {"machine": "sixty-four", "ranks": 64},
}


@pytest.fixture(scope="module", params=sorted(LAYOUTS))
def laid_out(request: pytest.FixtureRequest, mapped: Mapped, launched: Launched) -> list[Drawing]:
    """Maps of small and large machines, laid out at the resolution of their PNG."""
    drawn = mapped(launched(**LAYOUTS[request.param]), machine=WARNING)
    with style():
        for each in drawn:
            each.figure.set_dpi(300)
            each.figure.draw_without_rendering()
    return drawn


def boxes(drawing: Drawing) -> Iterator[tuple[str, Bbox, float]]:
    for text in drawing.figure.findobj(Text):
        hidden = any(
            text in axis.findobj(Text)
            for axes in drawing.figure.axes
            for axis in (axes.xaxis, axes.yaxis)
        )
        if text.get_text().strip() and not hidden:
            yield text.get_text(), text.get_window_extent(), text.get_fontsize()


def test_every_word_is_legible_on_the_page_and_on_no_other(laid_out: list[Drawing]) -> None:
    for drawing in laid_out:
        assert drawing.figure.get_size_inches()[0] == COLUMN_INCHES
        words, page = list(boxes(drawing)), drawing.figure.bbox
        for text, box, size in words:
            assert size >= TEXT_POINTS, text
            assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= page.x1 and box.y1 <= page.y1, text
        for (text, box, _), (other, other_box, _) in combinations(words, 2):
            common = Bbox.intersection(box, other_box)
            overlap = 0.0 if common is None else min(common.width, common.height)
            assert overlap < 3, f"{text!r} on {other!r}"


def test_every_colour_has_a_dark_one(laid_out: list[Drawing]) -> None:
    for drawing in laid_out:
        for axes in drawing.figure.axes:
            for patch in axes.patches:
                for colour in (patch.get_facecolor(), patch.get_edgecolor()):
                    if colour[3]:
                        assert to_hex(colour) in DARK


def test_no_line_leaves_its_panel(laid_out: list[Drawing]) -> None:
    for drawing in laid_out:
        for axes in drawing.figure.axes:
            (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
            for patch in axes.patches:
                box = patch.get_path().get_extents() if type(patch) is PathPatch else None
                if box is not None:
                    assert left <= box.x0 and box.x1 <= right
                    assert bottom <= box.y0 and box.y1 <= top
