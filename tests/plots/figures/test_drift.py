"""The drift's figure: a mark for every launch, a line for every block."""

from typing import Any

import pytest

from experiments.analysis.campaign import Campaign
from plots.figures.drift import FIGURE as drift
from plots.figures.drift import paces
from tests.campaigns import changed, find, make_cells, of_cells
from tests.launched import made
from tests.plots.figures.reading import only, reason


def paced(blocks: int = 5, slow: float = 1.5, **levels: Any) -> Campaign:
    """A campaign in which the host is slow in one block; the last block ran first."""
    cells = make_cells(blocks=blocks, **levels)
    cells.loc[(cells["block"] == 3) & (cells["arm"] == "host"), "median_s"] *= slow
    launches = [
        made({"launch": {"block": block, "arm": arm}, "began": 1000.0 - 10 * block})
        for block, arm in cells[["block", "arm"]].drop_duplicates().itertuples(index=False)
    ]
    return changed(of_cells(cells, blocks), launches=launches)


def test_a_launch_that_took_longer_than_its_arm_usually_does_is_slow() -> None:
    frame = paces(paced())
    assert frame["block"].is_monotonic_decreasing
    assert frame["began_s"].tolist() == sorted(10.0 * (4 - block) for block in frame["block"])
    (row,) = frame[frame["pace"] > 1.2].itertuples(index=False)
    assert (row.block, row.arm) == (3, "host")
    assert row.pace == pytest.approx(1.5, rel=0.03)


def test_launches_that_stored_no_time_of_day_are_left_out() -> None:
    assert paces(changed(find(blocks=2), launches=[made({})])).empty


def test_every_launch_has_a_mark_and_the_words_say_how_far_a_block_agrees() -> None:
    drawing = only(drift, paced())
    (axes,) = drawing.figure.axes
    lines = [line for line in axes.lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in lines] == [3] * 5  # type: ignore[arg-type]
    assert " to 1.5" in drawing.caption and " times as long as usual" in drawing.caption
    assert " % in the median block" in drawing.caption


def test_the_words_say_what_neighbours_that_sleep_cost() -> None:
    campaign = paced()
    host = campaign.cells[campaign.cells["arm"] == "host"]
    alone = host.assign(median_s=host["median_s"] / 1.01)
    caption = only(drift, changed(campaign, alone=alone)).caption
    assert "the host took 1.01 times as long as alone: the median of 360 cells" in caption
    assert "80 % of them from 1.01 to 1.01" in caption


def test_one_block_shows_no_drift() -> None:
    assert reason(drift, paced(blocks=1))
    assert reason(drift, changed(paced(), machine="Emulated."))
