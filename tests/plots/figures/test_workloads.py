"""Figure 8: computation and communication of a step."""

from typing import Any

import pytest

from experiments.model.quantities import percent_text
from plots.contents import answers, tables
from plots.draw import drawings
from plots.figures.workloads import FIGURE as workloads
from plots.layout.figure_layout import Drawing
from tests.campaigns import find
from tests.plots.figures.reading import only

STEPS: dict[str, Any] = {
    "operations": ("decode_step",),
    "transports": ("gloo", "torch"),
    "kinds": ("regular",),
    "sizes": (16384, 65536),
}


def test_a_bar_for_each_transport_and_arm_ends_at_the_time_of_a_step() -> None:
    campaign = find(**STEPS)
    for axes, (_, mine) in zip(
        only(workloads, campaign).figure.axes, campaign.workloads.groupby("bytes"), strict=True
    ):
        computed, communicated = axes.containers
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [
            f"{transport}, {arm}"
            for transport in ("gloo", "torch")
            for arm in ("host", "docker-tuned-one")
        ]
        rows = mine.set_index(["transport", "arm"])
        for name, first, second, words in zip(
            names, computed, communicated, axes.texts[1:], strict=True
        ):
            row = rows.loc[tuple(name.split(", "))]
            assert first.get_width() == pytest.approx(row["bound_s"])
            assert first.get_width() + second.get_width() == pytest.approx(row["median_s"])
            assert words.get_position()[1] == pytest.approx(first.get_y() + first.get_height() / 2)
            assert words.get_text().endswith(percent_text(row["share"], 0))


def test_steps_are_in_a_table_and_answers_of_their_own() -> None:
    campaign = find(**STEPS)
    names = {table.name for table in tables(campaign)}
    assert "workloads" in names and "times" not in names
    drawn = {drawing.topic for drawing in drawings(campaign) if isinstance(drawing, Drawing)}
    assert "workloads" in drawn and "times" not in drawn
    answered = {answer.question: answer for answer in answers(campaign)}
    share = answered["How much of a Decode step is communication?"]
    assert share.figure == "workloads"
    assert share.sentence.startswith("Host, from size to size: ")
    assert "of its time on gloo" in share.sentence and "on torch" in share.sentence
    assert "How much slower than torch is gloo?" in answered
