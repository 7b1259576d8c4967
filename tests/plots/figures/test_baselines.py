"""Figure 5: Python's own means beside MPI."""

import pytest

from plots.figures.baselines import FIGURE as baselines
from plots.figures.times import FIGURE as times
from tests.campaigns import find
from tests.plots.figures.reading import marks, only

ARMS = ("host", "host-again", "docker-tuned-one", "threads", "multiprocessing")


def test_a_line_for_each_way_of_the_host_in_ordinary_memory() -> None:
    drawing = only(baselines, find(arms=ARMS))
    assert len(drawing.figure.axes) == 3
    shown = marks(drawing)
    assert len(shown) == 3 * 6
    first = shown[:6]
    assert len({str(line.get_marker()) for line in first}) == 6
    assert len({str(line.get_color()) for line in first}) == 6


def test_each_way_is_compared_with_the_calls_whose_turns_it_took() -> None:
    campaign = find(arms=ARMS, sizes=(1024,))
    assert set(campaign.baselines["transport"]) == {"threads", "shared_memory", "queues"}
    assert len(campaign.baselines) == 3 * 3
    times = campaign.times[campaign.times["kind"] == "regular"].set_index(
        ["operation", "transport", "arm"]
    )["median_s"]
    for cell in campaign.baselines.itertuples():
        own = {"queues": "pickle"}.get(str(cell.transport), "mpi")
        over = times[cell.operation, cell.transport, cell.arm] / times[cell.operation, own, "host"]
        assert cell.ratio == pytest.approx(over, rel=0.05)


def test_baselines_are_no_arm_of_the_other_figures() -> None:
    campaign = find(arms=ARMS)
    assert len(only(times, campaign).figure.axes) == 3 * 2  # host and Docker
    assert set(campaign.speedups["arm"]) == {"host", "docker-tuned-one"}
    assert set(campaign.transports["transport"]) == {"mpi", "pickle"}
