"""Figure 2: the speed-up of high-bandwidth memory beside the paper's claim."""

from collections.abc import Callable

import pytest
from matplotlib.patches import Rectangle

from plots.figures.speedup import CLAIM_BROADCAST_16, CLAIM_MOST, speedup
from plots.findings import Findings
from plots.labels import EMULATED
from plots.sheet import Drawing, Skipped
from plots.style import PAPER, style

Find = Callable[..., Findings]


def drawn(found: Findings) -> Drawing | Skipped:
    with style():
        (only,) = speedup(found)
    return only


def bars(drawing: Drawing | Skipped) -> list[Rectangle]:
    assert isinstance(drawing, Drawing)
    return [bar for axes in drawing.figure.axes for bar in axes.patches]  # type: ignore[misc]


def told(drawing: Drawing | Skipped) -> str:
    assert isinstance(drawing, Drawing)
    return " ".join(text.get_text() for text in drawing.figure.texts)


def test_a_bar_per_operation_and_rank_count_at_the_largest_size(findings: Find) -> None:
    found = findings(emulated=False, ranks=(2, 4), arms=("host",), transports=("mpi",))
    heights = [bar.get_height() for bar in bars(drawn(found))]
    assert len(heights) == 3 * 2
    assert heights == pytest.approx([3.2] * 6, rel=0.06)


def test_bars_start_at_zero(findings: Find) -> None:
    drawing = drawn(findings())
    assert {bar.get_y() for bar in bars(drawing)} == {0}
    assert isinstance(drawing, Drawing)
    assert {axes.get_ylim()[0] for axes in drawing.figure.axes} == {0}


def test_the_papers_two_figures_are_marked_as_its_claim(findings: Find) -> None:
    drawing = drawn(findings(ranks=(2, 16), blocks=2, arms=("host",)))
    assert isinstance(drawing, Drawing)
    axes = drawing.figure.axes[1]  # mpi's, as the paper's
    said = {text.get_text() for text in axes.texts}
    assert {"paper: 445 %, 16 ranks", "paper: 487 % at most"} <= said
    assert CLAIM_MOST in {line.get_ydata()[0] for line in axes.get_lines()}
    ends = [s for c in axes.collections for s in c.get_segments() if s[0][1] == CLAIM_BROADCAST_16]
    ((left, _), (right, _)) = ends[0]
    assert left < 1 < right < 2  # the second bar of Bcast is that of 16 ranks


def test_the_claim_stays_in_sight_however_small_the_bars(findings: Find) -> None:
    drawing = drawn(findings())
    assert isinstance(drawing, Drawing)
    assert all(axes.get_ylim()[1] > CLAIM_MOST for axes in drawing.figure.axes)


def test_emulated_memory_is_labelled_on_the_figure_and_real_memory_is_not(findings: Find) -> None:
    assert EMULATED in told(drawn(findings(emulated=True)))
    assert "mulated" not in told(drawn(findings(emulated=False)))


def test_one_block_gives_hollow_bars(findings: Find) -> None:
    drawing = drawn(findings(blocks=1))
    assert {bar.get_facecolor() for bar in bars(drawing)} == {(1.0, 1.0, 1.0, 1.0)}
    assert PAPER == "#ffffff"
    assert "Hollow bar" in told(drawing)


def test_a_missing_arm_is_told_on_the_figure(findings: Find) -> None:
    drawing = drawn(findings(arms=("host",), missing={"docker": "no engine answers"}))
    assert "Not measured. docker: no engine answers" in told(drawing)


def test_a_campaign_of_one_kind_is_left_out_with_the_reason(findings: Find) -> None:
    left_out = drawn(findings(kinds=("regular",)))
    assert isinstance(left_out, Skipped)
    assert "a kind of memory to compare with regular" in left_out.reason
    left_out = drawn(findings(kinds=("regular",), missing={"hbw": "no HBM here"}))
    assert isinstance(left_out, Skipped)
    assert left_out.reason == "hbw: no HBM here"
