"""The heat map of a machine: all nodes, all ranks, all pages, and every launch that differs."""

from typing import Any

import numpy as np
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from numpy.typing import NDArray

from plots.figures.placement_map import FIGURE as placement_map
from plots.figures.placement_map import NAME
from plots.layout.figure_layout import Drawing
from plots.layout.labels import EMULATED
from plots.layout.style import DARK, INK, KINDS, style
from tests.campaigns import changed, find
from tests.launched import make_launch, page_maps
from tests.plots.figures.reading import drawn, legend
from tests.plots.legible import check_words

MIB = 2**20
WARNING = "Emulated machine x (tcg): where ranks and pages are is real, times mean nothing."


def mapped(*launches: dict[str, Any], machine: str = "") -> list[Drawing]:
    """The drawings of these launches' places."""
    campaign = find(blocks=1, sizes=(1024,), kinds=("regular",))
    return drawn(placement_map, changed(campaign, page_maps=page_maps(launches), machine=machine))


def texts(drawing: Drawing, panel: int | None = None) -> list[str]:
    """What is written, in a panel or on the whole page, lines joined."""
    whole = drawing.figure if panel is None else drawing.figure.axes[panel]
    return [text.get_text() for text in whole.findobj(Text) if text.get_text()]


def message(drawing: Drawing) -> str:
    return " ".join(texts(drawing))


def shares(drawing: Drawing, panel: int) -> NDArray[np.float64]:
    """How opaque each cell of a panel is, a row a node, a column a rank; 0 where no page is."""
    (mesh,) = drawing.figure.axes[panel].findobj(QuadMesh)
    cells = np.asarray(mesh.get_array())
    return np.asarray(cells[..., 3], dtype=float)


def titles(drawing: Drawing) -> list[str]:
    """The title of each panel."""
    return [axes.texts[0].get_text() for axes in drawing.figure.axes]


def test_the_first_panel_has_the_cpu_of_each_rank_and_the_size_of_each_node() -> None:
    (drawing,) = mapped(make_launch(binding="spread"))
    written = texts(drawing, 0)
    assert [f"{node}, 1.5 GiB" in written for node in range(4)] == [True] * 4
    assert [f"{node} HBM, 512 MiB" in written for node in range(4, 8)] == [True] * 4
    numbers = sorted(int(text) for text in written if text.isdigit())
    ranks, cpus = list(range(8)), list(range(8))
    assert numbers == sorted(ranks + cpus)
    assert [np.flatnonzero(column).tolist() for column in shares(drawing, 0).T] == [
        [rank % 4] for rank in range(8)
    ]
    assert "CPUs: 0–1 on node 0; 2–3 on node 1;" in drawing.printed_caption


def test_there_is_a_panel_for_each_kind_and_locality() -> None:
    (drawing,) = mapped(make_launch())
    assert titles(drawing)[1:] == ["regular, local", "regular, remote", "hbw, local", "hbw, remote"]


def test_a_cell_is_filled_by_the_share_of_a_ranks_pages_on_a_node() -> None:
    (drawing,) = mapped(make_launch(kinds=("hbw", "hbw_interleave"), localities=("local",)))
    one, four = shares(drawing, 1), shares(drawing, 2)
    assert [np.flatnonzero(column).tolist() for column in one.T] == [
        [4 + rank // 2] for rank in range(8)
    ]
    assert np.count_nonzero(four[:4]) == 0 and np.count_nonzero(four[4:]) == 8 * 4
    assert four.max() < one.max()
    assert texts(drawing, 1).count("100") == 8 and texts(drawing, 2).count("25") == 8 * 4
    assert "every rank: 25 % each on 4–7" in message(drawing)


@pytest.mark.parametrize(("strayed", "text"), [(4096, "1"), (2 * MIB - 4096, "99")])
def test_no_page_is_lost_to_rounding(strayed: int, text: str) -> None:
    moved = {("hbw", "local", 0): {0: strayed, 4: 2 * MIB - strayed}}
    (drawing,) = mapped(make_launch(kinds=("hbw",), localities=("local",), placed=moved))
    inked = [label for label in drawing.figure.axes[1].texts if label.get_color() == INK]
    cells = [label.get_text() for label in inked if label.get_text().isdigit()]
    assert sorted(cells) == sorted([text, str(100 - int(text)), *["100"] * 7])
    assert shares(drawing, 1)[0, 0] > 0


def test_beside_a_node_is_how_much_it_holds() -> None:
    (drawing,) = mapped(make_launch(kinds=("hbw",), localities=("remote",)))
    assert {"4 HBM, 12 MiB", "5 HBM, 4 MiB", "6 HBM", "0"} <= set(texts(drawing, 1))


def test_the_nodes_that_are_local_to_a_rank_are_outlined() -> None:
    (drawing,) = mapped(make_launch())
    for axes in drawing.figure.axes:
        outlined = {patch.get_xy() for patch in axes.patches if isinstance(patch, Rectangle)}
        near = [(rank, node) for rank in range(8) for node in (rank // 2, rank // 2 + 4)]
        assert outlined == set(near)


def test_nodes_are_reported_apart_by_cpus_and_by_hbm() -> None:
    launch = make_launch(ranks=1)
    nodes = launch["environment"]["topology"]["nodes"]
    nodes[1]["is_hbm"], nodes[7]["is_hbm"] = True, False
    (drawing,) = mapped(launch)
    colours = {
        text.get_text().partition(",")[0]: text.get_color()
        for text in drawing.figure.axes[0].texts
        if ", " in text.get_text()
    }
    hbm, ddr = KINDS["hbw"].colour, KINDS["regular"].colour
    assert (colours["0"], colours["1 HBM"], colours["4 HBM"]) == (ddr, hbm, hbm)
    assert colours["7"] == KINDS["dax_kmem"].colour
    assert legend(drawing) == [
        "node with CPUs",
        "HBM, with CPUs",
        "HBM, no CPUs",
        "other memory, no CPUs",
        "local to the rank",
    ]


def test_pages_that_strayed_and_launches_that_differ_are_on_the_map() -> None:
    usual = {"kinds": ("hbw_preferred",), "localities": ("local",)}
    moved = {("hbw_preferred", "local", 3): {3: MIB, 5: MIB}}
    (drawing,) = mapped(
        *(make_launch(block=n, **usual, placed=moved if n == 1 else None) for n in range(3))
    )
    assert titles(drawing)[1:] == ["hbw_preferred, local"] * 2
    shown = message(drawing)
    assert "Not the same in all launches: hbw_preferred, local." in shown
    assert "in 2 of 3 launches" in shown and "93.8 % as asked" in shown
    assert "rank 3: 50 % each on 3, 5" in shown
    assert "rank 3: 50 % each on 3, 5" in drawing.description


def test_launches_with_ranks_elsewhere_refer_to_each_other() -> None:
    moved = make_launch(block=1)
    moved["ranks"][0]["cpu"] = 1
    first, second = mapped(make_launch(), moved)
    assert (first.name, second.name) == (f"{NAME}-8-ranks-packed", f"{NAME}-8-ranks-packed-2")
    for drawing in (first, second):
        assert "1 launch has other nodes or CPUs: see that map too." in message(drawing)


def test_many_panels_are_spread_over_several_drawings() -> None:
    kinds = ("regular", "hbw", "hbw_all", "hbw_interleave", "hbw_preferred")
    every = mapped(make_launch("xeon-max-flat-snc4", ranks=16, kinds=kinds))
    assert [len(drawing.figure.axes) - 1 for drawing in every] == [2] * 5
    assert len({drawing.name for drawing in every}) == 5
    assert max(drawing.figure.get_size_inches()[1] for drawing in every) < 9.5


def test_an_emulated_machine_and_emulated_hbm_are_alerts() -> None:
    (drawing,) = mapped(make_launch(), machine=WARNING)
    emulated = EMULATED.split(":")[0]
    assert "times mean nothing" in message(drawing) and emulated not in message(drawing)
    launch = make_launch("plain", ranks=2, kinds=("hbw",), emulated="")
    for rank in launch["ranks"]:
        for pool in rank["pools"]:
            pool["emulated"] = True
    (drawing,) = mapped(launch)
    assert emulated in message(drawing)


def test_the_words_name_every_node_rank_and_page() -> None:
    every = mapped(make_launch("xeon-max-flat-snc4", ranks=16, binding="spread"))
    words = " ".join(drawing.description for drawing in every)
    for node in range(8):
        assert f"node {node}, node with CPUs, 1.5 GiB, CPUs" in words
        assert f"ranks {node}, {node + 8} on node {node + 8}" in words


@pytest.mark.parametrize("named", ["", "hbw: "])
def test_what_was_not_measured_says_why_in_its_panel(named: str) -> None:
    (drawing,) = mapped(make_launch("plain", ranks=2, skipped=f"{named}this machine has no HBM"))
    (shown,) = (text.replace("\n", " ") for text in texts(drawing, 3) if "measured" in text)
    assert shown == "Not measured. hbw: this machine has no HBM"
    assert "hbw, local: not measured: this machine has no HBM." in drawing.description


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
RARE = ("four and four, spread", "more ranks than CPUs", "eight and eight", "sixteen nodes")
"""Up to ten seconds each, and like the others."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.rare] * (name in RARE)) for name in LAYOUTS]
)
def test_every_word_is_legible_and_every_colour_has_a_dark_one(name: str) -> None:
    for drawing in mapped(make_launch(**LAYOUTS[name]), machine=WARNING):
        with style():
            check_words(drawing.figure)
        for axes in drawing.figure.axes:
            for patch in axes.patches:
                for colour in (patch.get_facecolor(), patch.get_edgecolor()):
                    if colour[3]:
                        assert to_hex(colour) in DARK
            for mesh in axes.findobj(QuadMesh):
                filled = {to_hex(c) for c in mesh.get_array().reshape(-1, 4) if c[3]}
                assert filled | {to_hex(c) for c in mesh.get_edgecolor()} <= DARK.keys()
