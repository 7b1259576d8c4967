"""Load, stolen time and other work on a rank's CPU, as the kernel counts them."""

import os
import time
from pathlib import Path

import pytest

from experiments.programs.machine import disturbance

STAT = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 100 20 30 4000 50 6 4 70 80 0\ncpu10 0 0 0 0 0 0 0 0 0 0\n"


def test_a_cpus_busy_and_stolen_seconds_leave_out_idleness_and_guests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturbance, "TICKS", 100)
    (tmp_path / "stat").write_text(STAT)
    (tmp_path / "loadavg").write_text("1.25 0.50 0.10 3/101 31072\n")
    found = disturbance.counters(1, tmp_path)
    assert (found["busy"], found["stolen"], found["load"]) == (1.6, 0.7, 1.25)


def test_what_the_kernel_does_not_show_is_unknown(tmp_path: Path) -> None:
    found = disturbance.counters(1, tmp_path)
    assert (found["busy"], found["stolen"], found["load"]) == (None, None, None)
    shown = disturbance.between(found, found)
    assert (shown["busy"], shown["stolen"], shown["load"]) == (None, None, [None, None])


def test_a_process_that_works_and_sleeps_shows_in_its_own_counters() -> None:
    cpu = min(os.sched_getaffinity(0))
    before = disturbance.counters(cpu)
    while time.process_time() - before["own"] < 0.02:
        pass
    time.sleep(0.001)
    found = disturbance.between(before, disturbance.counters(cpu))
    assert isinstance(found["own"], float) and found["own"] > 0
    assert isinstance(found["voluntary"], int) and found["voluntary"] >= 1
    assert {"seconds", "load", "busy", "stolen", "own", "voluntary", "involuntary"} == set(found)
