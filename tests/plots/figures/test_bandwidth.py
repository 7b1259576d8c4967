"""The figure of bus bandwidth: a panel for each operation, a line for each arm."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from experiments.analysis.findings.campaign import Findings
from plots.figures.bandwidth import bandwidth, rates
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style

Find = Callable[..., Findings]


def test_each_operation_has_a_panel_and_each_arm_a_line(findings: Find) -> None:
    with style():
        (drawing,) = bandwidth(findings())
    assert isinstance(drawing, Drawing)
    assert drawing.name == "bandwidth-2-ranks"
    assert len(drawing.figure.axes) == 3
    assert "nccl-tests" in drawing.caption


def test_two_ranks_reduce_a_message_over_the_bus_once(findings: Find) -> None:
    times = findings().times
    mine = rates(times[times["operation"] == "allreduce"])
    assert list(mine["rate"]) == pytest.approx(list(mine["bytes"] / mine["median_s"]))


def test_without_direct_there_is_none(findings: Find) -> None:
    found = findings()
    without = replace(found, times=found.times[found.times["transport"] != "direct"])
    assert isinstance(bandwidth(without)[0], Skipped)
