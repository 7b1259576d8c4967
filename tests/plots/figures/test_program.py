"""The figure of a user's program."""

import pytest

from experiments.analysis.program_cost import cost_of
from plots.figures.program import drawing
from plots.html.program import page
from tests.plots.figures.reading import legend, marks
from tests.stored_programs import stored


def test_a_row_for_each_environment_has_its_ratio_and_its_seconds() -> None:
    shown = drawing(cost_of(stored(1.25, slow=2)))
    ratios, seconds = shown.figure.axes
    assert [label.get_text() for label in ratios.get_yticklabels()] == ["host", "docker-default"]
    first, second = (float(mark.get_xdata()[0]) for mark in marks(ratios))  # type: ignore[index]
    assert first == 1
    assert second == pytest.approx(1.25, rel=0.01)
    work, in_mpi = seconds.patches[2:]
    assert in_mpi.get_width() == pytest.approx(2)  # type: ignore[attr-defined]
    assert work.get_width() + in_mpi.get_width() == pytest.approx(5, rel=0.05)  # type: ignore[attr-defined]
    assert legend(shown)[:2] == ["its own work", "calls of MPI"]
    assert "docker-default: 1.25 times as long" in shown.description


def test_few_blocks_have_hollow_marks_and_no_noise() -> None:
    shown = drawing(cost_of(stored(1.25, blocks=2)))
    assert not any(text.startswith("noise") for text in legend(shown))


def test_the_page_has_it() -> None:
    text = page(stored(1.25))
    assert 'id="program"' in text
    assert "<svg" in text
