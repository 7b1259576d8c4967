"""Figure 1: time against message size."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection

from plots.figures.times import FIGURE as times
from plots.layout.figure_layout import Drawing
from plots.layout.style import KINDS
from tests.campaigns import find
from tests.plots.figures.reading import legend, marks, message, only


@pytest.fixture(scope="module")
def drawing() -> Drawing:
    """The figure of the plain campaign; tests only read it."""
    return only(times, find())


def test_a_row_per_operation_and_a_column_per_environment_on_logarithmic_axes(
    drawing: Drawing,
) -> None:
    assert len(drawing.figure.axes) == 3 * 2
    assert {(a.get_xscale(), a.get_yscale()) for a in drawing.figure.axes} == {("log", "log")}


def test_every_point_has_an_interval_and_every_cell_a_point() -> None:
    campaign = find(arms=("host",), transports=("mpi",), operations=("bcast",))
    drawing = only(times, campaign)
    (axes,) = drawing.figure.axes
    medians = np.concatenate([line.get_ydata() for line in marks(drawing)])
    assert sorted(medians) == pytest.approx(sorted(campaign.times["median_s"]))
    intervals = [c for c in axes.collections if isinstance(c, LineCollection)]
    assert sum(len(collection.get_segments()) for collection in intervals) == len(campaign.times)


def test_each_transport_has_its_line_and_direct_the_heaviest() -> None:
    drawing = only(times, find(arms=("host",), kinds=("regular",), operations=("bcast",)))
    joins = [line for line in drawing.figure.axes[0].get_lines() if line.get_marker() == "None"]
    *transports, bound = joins
    assert len({str(line.get_linestyle()) for line in joins}) > 1
    widths = [line.get_linewidth() for line in transports]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > bound.get_linewidth()
    assert [text.split()[0] for text in legend(drawing) if "(DDR)" not in text] == [
        *("memory", "direct", "mpi", "pickle"),
    ]


def test_a_transport_that_could_not_be_had_is_reported_on_the_figure() -> None:
    drawing = only(times, find(transports=("mpi",), missing={"direct": "no shared memory"}))
    assert "Not measured. direct: no shared memory" in message(drawing)


def test_the_memory_bound_is_drawn_for_each_kind() -> None:
    campaign = find(arms=("host",), operations=("bcast",))
    drawing = only(times, campaign)
    bounds = sorted(campaign.times["bound_s"].unique())
    shown = [
        line.get_color()
        for line in drawing.figure.axes[0].get_lines()
        if list(line.get_ydata()) == bounds
    ]
    assert set(shown) == {KINDS["regular"].colour, KINDS["hbw"].colour}


def test_points_that_were_timed_in_groups_are_reported() -> None:
    campaign = find(arms=("host",))
    assert "in groups" not in message(only(times, campaign))
    campaign.times.loc[campaign.times["bytes"] == 1024, "group"] = 3
    drawing = only(times, campaign)
    words = "18 of 72 points, up to 1 KiB, timed back to back in groups of up to 3;"
    assert words in message(drawing)


def test_a_size_is_labelled_in_bytes(drawing: Drawing) -> None:
    axes = drawing.figure.axes[-1]
    assert axes.xaxis.get_major_formatter()(262144, 0) == "256 KiB"


def test_one_size_alone_can_be_drawn() -> None:
    drawing = only(times, find(sizes=(1024,)))
    low, high = drawing.figure.axes[0].get_xlim()
    assert low < 1024 < high


def test_a_missing_arm_is_reported_in_place_of_its_data() -> None:
    campaign = find(arms=("host",), missing={"docker": "no engine answers"})
    drawing = only(times, campaign)
    texts = [text.get_text() for axes in drawing.figure.axes for text in axes.texts]
    reported = [text.replace("\n", " ") for text in texts if text.startswith("Not measured.")]
    assert reported == ["Not measured. docker: no engine answers"] * 3
    assert len(drawing.figure.axes) == 3 * 2


def test_the_description_tells_the_ends_of_each_line() -> None:
    drawing = only(times, find(arms=("host",)))
    assert "Bcast, mpi, regular, host: 2." in drawing.description
    assert "at 1 KiB to" in drawing.description
