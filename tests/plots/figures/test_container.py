"""Figure 4: the cost of a container against the noise floor."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from plots.figures.container import MOST, container
from plots.findings import Findings
from plots.sheet import Drawing, Skipped
from plots.style import BAND, PAPER, style

Find = Callable[..., Findings]


def drawn(found: Findings) -> list[Drawing | Skipped]:
    with style():
        return container(found)


def only(found: Findings) -> Drawing:
    (drawing,) = drawn(found)
    assert isinstance(drawing, Drawing)
    return drawing


def marks(drawing: Drawing) -> list[Line2D]:
    lines = [line for axes in drawing.figure.axes for line in axes.get_lines()]
    return [line for line in lines if line.get_marker() != "None"]


def bands(drawing: Drawing) -> list[Rectangle]:
    patches = [patch for axes in drawing.figure.axes for patch in axes.patches]
    return [patch for patch in patches if to_hex(patch.get_facecolor()) == BAND]  # type: ignore[misc]


def test_every_cell_is_a_mark_at_its_ratio(findings: Find) -> None:
    found = findings()
    ratios = [line.get_xdata()[0] for line in marks(only(found))]
    assert sorted(ratios) == pytest.approx(sorted(found.containers["ratio"]))


def test_the_noise_floor_is_a_band_around_one_in_every_panel(findings: Find) -> None:
    found = findings()
    drawing = only(found)
    assert len(bands(drawing)) == len(drawing.figure.axes)
    band = bands(drawing)[0]
    assert band.get_x() == pytest.approx(1 - found.floor)
    assert band.get_x() + band.get_width() == pytest.approx(1 + found.floor)


def test_without_the_twin_there_is_no_band_and_the_legend_says_so(findings: Find) -> None:
    drawing = only(findings(arms=("host", "docker")))
    assert bands(drawing) == []
    (legend,) = drawing.figure.legends
    assert "no A/A pair, no noise floor" in {text.get_text() for text in legend.get_texts()}


def test_one_block_is_hollow_without_interval(findings: Find) -> None:
    drawing = only(findings(blocks=1))
    assert {line.get_markerfacecolor() for line in marks(drawing)} == {PAPER}
    assert not any(axes.collections for axes in drawing.figure.axes)
    assert "Median over 1 block, paired" in " ".join(t.get_text() for t in drawing.figure.texts)


def test_a_ratio_beyond_the_axis_is_an_arrow_at_its_edge(findings: Find) -> None:
    found = findings()
    found.containers.loc[0, ["ratio", "low", "high"]] = [9.0, 8.0, 10.0]
    drawing = only(found)
    (arrow,) = (line for line in marks(drawing) if line.get_marker() == ">")
    assert arrow.get_xdata()[0] == MOST == drawing.figure.axes[0].get_xlim()[1]
    assert "Arrow: beyond 4×" in " ".join(text.get_text() for text in drawing.figure.texts)


def test_a_data_path_that_differs_is_told_on_the_figure(findings: Find) -> None:
    drawing = only(replace(findings(), caveats=("The data path differs: CMA.",)))
    assert "The data path differs: CMA." in {text.get_text() for text in drawing.figure.texts}
    assert drawing.caption.endswith(" The data path differs: CMA.")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_what_left_and_right_mean_is_told_as_often_as_there_is_room(
    findings: Find, count: int
) -> None:
    drawing = only(findings(transports=("direct", "mpi", "pickle")[:count]))
    told = [axes.get_xlabel() for axes in drawing.figure.axes[-count:]]
    assert told.count("← docker faster · slower →") == (1 if count == 3 else count)


def test_one_drawing_per_rank_count(findings: Find) -> None:
    names = [each.name for each in drawn(findings(ranks=(2, 4), blocks=2))]
    assert names == ["container-docker-2-ranks", "container-docker-4-ranks"]


def test_a_missing_arm_is_a_figure_that_says_so(findings: Find) -> None:
    drawing = only(findings(arms=("host",), missing={"docker": "no engine answers"}))
    assert drawing.name == "container-docker"
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == [
        "Not measured. docker: no engine answers"
    ]


def test_a_campaign_without_a_container_is_left_out_with_the_reason(findings: Find) -> None:
    (left_out,) = drawn(findings(arms=("host", "host-again")))
    assert isinstance(left_out, Skipped)
    assert left_out.reason == "this campaign has no container arm"


def test_the_description_lists_what_lies_beyond_the_floor(findings: Find) -> None:
    assert "Intervals beyond the noise floor: none." in only(findings(sizes=(1024,))).description
    assert "AllReduce, pickle, regular, 4 MiB: 1.2" in only(findings()).description
