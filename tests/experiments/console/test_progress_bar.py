"""What the user sees while launches run, where standard error is no terminal."""

import io

import pytest
from rich.console import Console

from experiments.console import progress_bar
from experiments.console.progress_bar import Display


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, for a test to change."""
    now = [1000.0]
    monkeypatch.setattr(progress_bar.time, "monotonic", lambda: now[0])
    return now


def run(clock: list[float], seconds: list[float], total: int, done: int = 0) -> list[str]:
    shown = io.StringIO()
    with Display(total, done, Console(file=shown, width=100)) as display:
        for number, duration in enumerate(seconds):
            display.begin(f"launch-{number}")
            clock[0] += duration
            display.end()
        display.say("a [line] of its own")
    return shown.getvalue().splitlines()


def test_each_launch_is_told_with_the_time_that_is_left(clock: list[float]) -> None:
    assert run(clock, [30.0, 90.0, 60.0], total=4) == [
        "[1/4] launch-0: 30.0 s, about 2 min left",
        "[2/4] launch-1: 90.0 s, about 2 min left",
        "[3/4] launch-2: 60.0 s",
        "a [line] of its own",
    ]


def test_launches_of_an_earlier_run_do_not_count_for_the_estimate(clock: list[float]) -> None:
    assert run(clock, [60.0], total=10, done=5)[0] == "[6/10] launch-0: 60.0 s, about 4 min left"


def test_a_long_line_is_not_wrapped() -> None:
    shown = io.StringIO()
    with Display(1, 0, Console(file=shown, width=20)) as display:
        display.begin("0001-docker-tuned-per-rank (mpich, 4 ranks, spread)")
        display.end()
    assert shown.getvalue().count("\n") == 1
