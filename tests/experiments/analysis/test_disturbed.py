"""What else ran on the CPUs of ranks is counted against what their launches used themselves."""

from typing import Any

import pytest

from experiments.analysis import disturbed
from experiments.results.result import Result
from tests.launched import made

LOADS: dict[str, Any] = {"seconds": 10.0, "load": [0.5, 2.25]}


def launch(*ranks: tuple[int, float, float, float], company: tuple[str, ...] = ()) -> Result:
    """A launch of 10 s; each rank by its CPU, and the seconds busy, own and stolen."""
    counted = [
        {"cpu": cpu, "disturbance": LOADS | {"busy": busy, "own": own, "stolen": stolen}}
        for cpu, busy, own, stolen in ranks
    ]
    return made({"company": list(company), "ranks": counted})


def test_a_quiet_machine_and_older_launches_say_nothing() -> None:
    quiet = {"0000-host": launch((0, 9.9, 9.8, 0.05), (1, 9.9, 9.8, 0.1))}
    assert list(disturbed.sentences(quiet)) == []
    assert list(disturbed.sentences({"0000-host": made({"ranks": [{"cpu": 0}]})})) == []


def test_stolen_time_is_named_with_its_share_launch_and_load() -> None:
    launches = {
        "0000-host": launch((0, 9.0, 9.0, 0.0), (1, 9.0, 9.0, 0.31)),
        "0001-host": launch((0, 9.0, 9.0, 0.05)),
    }
    (shown,) = disturbed.sentences(launches)
    assert shown == (
        "a hypervisor kept CPUs of ranks from running (steal time) for more than 1 % of the time "
        "in 1 of 2 launches; at most 3 %, in 0000-host (load average 0.5 before, 2.2 after): "
        "measure on a quieter machine, or again"
    )


def test_other_work_is_what_neither_the_ranks_nor_their_company_used() -> None:
    names = ("0000-docker", "0000-host")
    pair = {name: launch((0, 9.9, 4.9, 0.0), company=names) for name in names}
    assert disturbed.shares(pair)["others"].to_dict() == dict.fromkeys(names, pytest.approx(0.01))
    assert list(disturbed.sentences(pair)) == []
    (shown,) = disturbed.sentences({"0000-host": launch((0, 9.9, 4.9, 0.0))})
    assert "other processes ran on CPUs of ranks for more than 5 % of the time in 1 of 1" in shown
    assert "at most 50 %" in shown


def test_ranks_that_share_a_cpu_are_counted_together() -> None:
    crowded = {"0000-host": launch((0, 9.9, 4.9, 0.0), (0, 9.9, 4.9, 0.0))}
    assert disturbed.shares(crowded)["others"].to_list() == [pytest.approx(0.01)]


def test_a_kernel_that_counts_neither_says_nothing() -> None:
    none = LOADS | {"busy": None, "own": 9.0, "stolen": None, "load": [None, None]}
    silent = made({"ranks": [{"disturbance": none}]})
    assert list(disturbed.sentences({"0000-host": silent})) == []
