"""Figure 2: the speed-up of high-bandwidth memory against ranks and size, beside the paper's."""

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from plots.figures.speedup import FIGURE as speedup
from plots.tables.published import BCAST_16, MOST
from tests.campaigns import find
from tests.plots.figures.reading import drawn, legend, marks, message

REAL: dict[str, Any] = {"emulated": False, "transports": ("direct", "mpi")}


def test_one_drawing_against_ranks_and_one_against_size_for_each_count() -> None:
    many = drawn(speedup, find(ranks=(2, 16), blocks=2, **REAL))
    assert [drawing.name for drawing in many] == [
        "speedup-ranks",
        "speedup-2-ranks",
        "speedup-16-ranks",
    ]
    assert [drawing.name for drawing in drawn(speedup, find())] == ["speedup-2-ranks"]


def test_a_panel_for_each_operation_holds_every_arm_and_transport() -> None:
    drawing = drawn(speedup, find(ranks=(2, 4), blocks=2, **REAL))[0]
    assert len(drawing.figure.axes) == 3
    for axes in drawing.figure.axes:
        assert len(marks(axes)) == 2 * 2  # arms by transports
        assert {str(line.get_marker()) for line in marks(axes)} == {"s", "o"}
        assert len({to_hex(line.get_markeredgecolor()) for line in marks(axes)}) == 2
        heights = np.concatenate([np.asarray(line.get_ydata()) for line in marks(axes)])
        assert heights == pytest.approx([3.2] * 8, rel=0.08)  # two rank counts each
    assert legend(drawing)[:2] == ["host", "docker-tuned-one"]


def test_lines_join_sizes_and_never_rank_counts() -> None:
    against_ranks, against_size, _ = drawn(speedup, find(ranks=(2, 4), blocks=2, **REAL))
    for axes in against_ranks.figure.axes:
        assert {line.get_linestyle() for line in marks(axes)} == {"None"}
        assert all(
            len(line.get_xdata()) == 2 for line in axes.get_lines() if line not in marks(axes)
        )
    joined = [line for line in against_size.figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
    assert len(joined) == 2 * 2 * 2  # a line and its marks


def test_the_papers_two_figures_are_lines_that_the_legend_names() -> None:
    drawing = drawn(speedup, find(ranks=(2, 16), blocks=2, arms=("host",), **REAL))[0]
    assert legend(drawing)[-2:] == ["paper: 487 %", "paper: 445 %, 16 ranks"]
    claims = []
    for axes in drawing.figure.axes:
        assert MOST in {line.get_ydata()[0] for line in axes.get_lines()}
        assert axes.get_ylim()[1] > MOST
        ends = [segment for lines in axes.collections for segment in lines.get_segments()]
        claims += [(axes, segment) for segment in ends if segment[0][1] == BCAST_16]
    ((axes, ((left, _), (right, _))),) = claims
    assert axes is drawing.figure.axes[0]  # Bcast's
    assert left < 2 < right < 2**1.5  # where 16 ranks are, beside 2
    assert "445 % is read as 4.45 times as fast" in drawing.caption


def test_an_interval_off_the_scale_does_not_set_it() -> None:
    campaign = find(arms=("host",), **REAL)
    ends = drawn(speedup, campaign)[0].figure.axes[0].get_ylim()
    wide = campaign.speedups.index[0]
    campaign.speedups.loc[wide, ["low", "high"]] = [0.001, 900.0]
    drawing = drawn(speedup, campaign)[0]
    assert drawing.figure.axes[0].get_ylim() == ends
    assert "Intervals that leave the axis are cut" in message(drawing)


def test_every_median_is_on_the_axis() -> None:
    campaign = find(arms=("host",), **REAL)
    campaign.speedups.loc[campaign.speedups.index[0], "ratio"] = 60.0
    low, high = drawn(speedup, campaign)[0].figure.axes[0].get_ylim()
    assert low < 1 < 60 < high


def test_real_memory_is_not_called_emulated() -> None:
    assert "mulated" not in message(drawn(speedup, find(emulated=False))[0])
