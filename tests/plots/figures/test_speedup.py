"""Figure 2: the speed-up of high-bandwidth memory against ranks and size, beside the paper's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from experiments.analysis.findings.campaign import Findings
from plots.figures.speedup import speedup
from plots.layout.labels import EMULATED
from plots.layout.style import PAPER
from plots.tables.published import BCAST_16, MOST
from tests.plots.figures.reading import drawn, legend, marks, message, only, reason

Find = Callable[..., Findings]
REAL: dict[str, Any] = {"emulated": False, "transports": ("direct", "mpi")}


def test_one_drawing_against_ranks_and_one_against_size_for_each_count(findings: Find) -> None:
    many = drawn(speedup, findings(ranks=(2, 16), blocks=2, **REAL))
    assert [each.name for each in many] == ["speedup-ranks", "speedup-2-ranks", "speedup-16-ranks"]
    assert [each.name for each in drawn(speedup, findings())] == ["speedup-2-ranks"]


def test_a_panel_for_each_operation_holds_every_arm_and_transport(findings: Find) -> None:
    drawing = drawn(speedup, findings(ranks=(2, 4), blocks=2, **REAL))[0]
    assert len(drawing.figure.axes) == 3
    for axes in drawing.figure.axes:
        assert len(marks(axes)) == 2 * 2  # arms by transports
        assert {str(line.get_marker()) for line in marks(axes)} == {"s", "o"}
        assert len({to_hex(line.get_markeredgecolor()) for line in marks(axes)}) == 2
        heights = np.concatenate([np.asarray(line.get_ydata()) for line in marks(axes)])
        assert heights == pytest.approx([3.2] * 8, rel=0.08)  # two rank counts each
    assert legend(drawing)[:2] == ["host", "docker-tuned-one"]


def test_lines_join_sizes_and_never_rank_counts(findings: Find) -> None:
    against_ranks, against_size, _ = drawn(speedup, findings(ranks=(2, 4), blocks=2, **REAL))
    for axes in against_ranks.figure.axes:
        assert {line.get_linestyle() for line in marks(axes)} == {"None"}
        assert all(
            len(line.get_xdata()) == 2 for line in axes.get_lines() if line not in marks(axes)
        )
    joined = [line for line in against_size.figure.axes[0].get_lines() if len(line.get_xdata()) > 2]
    assert len(joined) == 2 * 2 * 2  # a line and its marks


def test_the_papers_two_figures_are_lines_that_the_legend_names(findings: Find) -> None:
    drawing = drawn(speedup, findings(ranks=(2, 16), blocks=2, arms=("host",), **REAL))[0]
    assert legend(drawing)[-2:] == ["paper: 487 %", "paper: 445 %, 16 ranks"]
    bcast, *others = drawing.figure.axes
    for axes in (bcast, *others):
        assert MOST in {line.get_ydata()[0] for line in axes.get_lines()}
        assert axes.get_ylim()[1] > MOST
    ends = [s for c in bcast.collections for s in c.get_segments() if s[0][1] == BCAST_16]
    ((left, _), (right, _)) = ends[0]
    assert left < 2 < right < 2**1.5  # where 16 ranks are, beside 2
    assert not [
        s
        for each in others
        for c in each.collections
        for s in c.get_segments()
        if s[0][1] == BCAST_16
    ]
    assert "445 % is read as 4.45 times as fast" in drawing.caption


def test_an_interval_off_the_scale_does_not_set_it(findings: Find) -> None:
    found = findings(arms=("host",), **REAL)
    ends = drawn(speedup, found)[0].figure.axes[0].get_ylim()
    wide = found.speedups.index[0]
    found.speedups.loc[wide, ["low", "high"]] = [0.001, 900.0]
    drawing = drawn(speedup, found)[0]
    assert drawing.figure.axes[0].get_ylim() == ends
    assert "Intervals that leave the axis are cut" in message(drawing)


def test_every_median_is_on_the_axis(findings: Find) -> None:
    found = findings(arms=("host",), **REAL)
    found.speedups.loc[found.speedups.index[0], "ratio"] = 60.0
    low, high = drawn(speedup, found)[0].figure.axes[0].get_ylim()
    assert low < 1 < 60 < high


def test_emulated_memory_is_labelled_on_the_figure_and_real_memory_is_not(findings: Find) -> None:
    assert EMULATED in message(drawn(speedup, findings(emulated=True))[0])
    assert "mulated" not in message(drawn(speedup, findings(emulated=False))[0])


def test_one_block_gives_hollow_marks(findings: Find) -> None:
    drawing = only(speedup, findings(blocks=1))
    for axes in drawing.figure.axes:
        assert {to_hex(line.get_markerfacecolor()) for line in marks(axes)} == {PAPER}
    assert "Hollow mark: too few blocks" in message(drawing)


def test_a_missing_arm_is_reported_on_the_figure(findings: Find) -> None:
    drawing = only(speedup, findings(arms=("host",), missing={"docker": "no engine answers"}))
    assert "Not measured. docker: no engine answers" in message(drawing)


def test_a_campaign_of_one_kind_is_left_out_with_the_reason(findings: Find) -> None:
    words = reason(speedup, findings(kinds=("regular",)))
    assert "a kind of memory to compare with regular" in words
    lacking = findings(kinds=("regular",), missing={"hbw": "no HBM here"})
    assert reason(speedup, lacking) == "hbw: no HBM here"
