"""The time of a cache line between two CPUs, by the program that measures it."""

import os
import signal
from pathlib import Path

import pytest

from experiments.machine import cache_line
from experiments.model.program import LINE
from experiments.provision import gate_build


def own() -> list[int]:
    """The children of this process that run the program."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [pid for pid in map(int, children) if Path(f"/proc/{pid}/comm").read_text() == "line\n"]


def test_it_is_measured_when_asked_and_the_program_ends_with_its_user() -> None:
    with cache_line.between_cpus(gate_build.ensure() / LINE) as line:
        assert line
        times = [line.nanoseconds() for _ in range(20)]
        assert len(own()) == 1
    assert all(time == 0 or 5 < time < 1_000_000 for time in times)
    assert any(times)
    assert not own()


def test_a_program_that_was_killed_is_no_error() -> None:
    with cache_line.between_cpus(gate_build.ensure() / LINE) as line:
        assert line
        assert line.nanoseconds() >= 0
        for pid in own():
            os.kill(pid, signal.SIGKILL)
        assert [line.nanoseconds() for _ in range(3)][-1] == 0


def test_one_cpu_has_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3})
    with cache_line.between_cpus(gate_build.ensure() / LINE) as line:
        assert line is None
