"""The pace of a launch is its time over the usual one of its own arm, in the order of the day."""

import pandas as pd
import pytest

from experiments.analysis.pace import COLUMNS, paces
from tests.campaigns import make_cells


def began(cells: pd.DataFrame) -> list[dict[str, object]]:
    """Launches, the last block first."""
    return [
        {"launch": {"block": block, "arm": arm}, "began": 1000.0 - 10 * block}
        for block, arm in cells[["block", "arm"]].drop_duplicates().itertuples(index=False)
    ]


def test_a_launch_that_took_longer_than_its_arm_usually_does_is_slow() -> None:
    cells = make_cells(blocks=5)
    slow = (cells["block"] == 3) & (cells["arm"] == "host")
    cells.loc[slow, "median_s"] *= 1.5
    found = paces(began(cells), cells)
    assert tuple(found) == COLUMNS
    assert found["block"].is_monotonic_decreasing
    assert found["began_s"].tolist() == sorted(10.0 * (4 - block) for block in found["block"])
    (row,) = found[found["pace"] > 1.2].itertuples(index=False)
    assert (row.block, row.arm) == (3, "host")
    assert row.pace == pytest.approx(1.5, rel=0.03)


def test_launches_that_stored_no_time_of_day_are_left_out() -> None:
    cells = make_cells(blocks=2)
    assert paces([{"launch": {"block": 0, "arm": "host"}}], cells).empty
