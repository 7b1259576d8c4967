"""Figure 9: other ways beside one of this library's systems."""

from typing import Any

import pytest

from plots.contents import answers, tables
from plots.documentation import MEASURED
from plots.draw import drawings
from plots.figures.systems import FIGURE as systems
from plots.figures.systems import OF_COLLECTIVES as others
from plots.layout.figure_layout import Drawing
from tests.campaigns import find
from tests.plots.figures.reading import drawn, only

PUSHES: dict[str, Any] = {
    "operations": ("tensor_push",),
    "transports": ("region", "grpc", "pack-mpi"),
    "kinds": ("regular",),
    "sizes": (65536, 1048576),
}


def test_a_line_for_each_other_way_shows_its_time_over_that_of_ours() -> None:
    campaign = find(**PUSHES)
    drawing = only(systems, campaign)
    (panel,) = drawing.figure.axes
    host = campaign.systems[campaign.systems["arm"] == "host"]
    _, *joined = (line for line in panel.lines if line.get_linestyle() != "None")  # after that at 1
    assert len(joined) == host["transport"].nunique() == 2
    shown = sorted(float(value) for line in joined for value in line.get_ydata())
    assert shown == pytest.approx(sorted(host["ratio"]))


@pytest.mark.parametrize(("printed", "rows"), [(False, 1), (True, 3)])
def test_other_ways_to_do_a_collective_are_beside_each_other_on_a_screen(
    printed: bool, rows: int
) -> None:
    campaign = find()
    (drawing,) = drawn(others, campaign, printed=printed)
    panels = drawing.figure.panels
    assert (len(panels), len(panels[0])) == (rows, 3 // rows)
    host = campaign.transports[campaign.transports["arm"] == "host"]
    regular = host[host["kind"] == "regular"]
    joined = [
        line
        for axes in drawing.figure.flat()
        for line in axes.lines[1:]  # after that at 1
        if line.get_linestyle() != "None"
    ]
    shown = sorted(float(value) for line in joined for value in line.get_ydata())
    assert shown == pytest.approx(sorted(regular["ratio"]))


def test_systems_are_in_the_tables_answers_and_rows_of_pages() -> None:
    campaign = find(**PUSHES)
    names = {table.name for table in tables(campaign)}
    assert {"times", "transport"} <= names and "workloads" not in names
    topics = {drawing.topic for drawing in drawings(campaign) if isinstance(drawing, Drawing)}
    assert "systems" in topics and "times" not in topics
    answered = {answer.question: answer for answer in answers(campaign)}
    slower = answered["How much slower than region is grpc?"]
    assert slower.figure == "systems"
    assert "with grpc as with region (" in slower.sentence
    rows = MEASURED["systems"](campaign).splitlines()
    assert len(rows) == 2 + 2 * 2
    assert rows[2].startswith("| Tensor push | 64 KiB | 2 | ")
