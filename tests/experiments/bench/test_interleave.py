"""Contenders take turns, are checked at their first and last call, and are timed alike."""

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from mpi4py import MPI

from experiments.bench.interleave import ROUNDS, Entrant, interleave
from experiments.measure.timing import WARMUP
from experiments.measure.trial import WrongResult
from experiments.spec import Measurement

ASKED = Measurement(time_cap=0.02, min_iterations=5, max_iterations=60)


def run(entrants: dict[str, Entrant], asked: Measurement = ASKED, seed: int = 1) -> Any:
    return interleave(
        entrants, MPI.COMM_SELF, asked, 50e-9, random.Random(seed), lambda operations: None
    )


def entrant(
    name: str, log: list[tuple[str, int | str]], seconds: float = 0.0, **others: Any
) -> Entrant:
    def prepare(iteration: int) -> Callable[[], object]:
        log.append((name, iteration))
        return lambda: time.sleep(seconds) if seconds else None

    return Entrant(prepare, lambda: log.append((name, "check")), **others)


def test_turns_are_short_and_their_order_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.bench.interleave.is_narrow", lambda seconds: False)
    log: list[tuple[str, int | str]] = []
    asked = Measurement(time_cap=1.0, min_iterations=5, max_iterations=2 * ROUNDS)
    run({name: entrant(name, log, 2e-4) for name in "abc"}, asked)
    timed = [name for name, what in log if what != "check"][3 * (1 + WARMUP) :]
    rounds = ["".join(timed[i : i + 6]) for i in range(0, len(timed), 6)]
    assert len(rounds) == ROUNDS
    assert all(sorted(each[::2]) == ["a", "b", "c"] for each in rounds)
    assert len(set(rounds)) > 1


def test_the_seed_decides_the_order() -> None:
    logs: list[list[tuple[str, int | str]]] = []
    for seed in (1, 1, 2):
        logs.append([])
        run({name: entrant(name, logs[-1]) for name in "abcdef"}, seed=seed)
    firsts = [[name for name, iteration in log if iteration == 0][:6] for log in logs]
    assert firsts[0] == firsts[1] != firsts[2]


def test_each_is_checked_after_its_first_and_after_its_last_call() -> None:
    log: list[tuple[str, int | str]] = []
    run({name: entrant(name, log, 2e-4) for name in "ab"})
    for name in "ab":
        own = [what for who, what in log if who == name]
        assert own[:2] == [0, "check"]
        assert own[-1] == "check"
        assert own.count("check") == 2


def test_all_are_timed_in_groups_of_one_size_and_warm_up_is_told_apart() -> None:
    found, wrong = run({"quick": entrant("quick", []), "slow": entrant("slow", [], 1e-3)})
    assert wrong == {}
    assert found["quick"].group == found["slow"].group > 1
    for samples in found.values():
        assert samples.warmup >= WARMUP
        assert samples.seconds.shape == (len(samples.seconds), 1)
        timed = len(samples.seconds) - samples.warmup
        assert ASKED.min_iterations <= timed <= ASKED.max_iterations
        assert samples.warmup >= timed / 10


def test_what_is_slow_is_called_as_often_as_it_must_and_no_more() -> None:
    found, _ = run({"slow": entrant("slow", [], 0.02), "quick": entrant("quick", [], 1e-4)})
    assert len(found["slow"].seconds) == WARMUP + ASKED.min_iterations
    assert np.median(found["slow"].seconds) >= 0.02


def test_a_peers_wrong_result_ends_its_own_part_alone() -> None:
    def fail() -> None:
        raise WrongResult("allreduce left 3 wrong elements")

    log: list[tuple[str, int | str]] = []
    good = entrant("good", log)
    bad = Entrant(entrant("bad", log).prepare, fail, ours=False)
    found, wrong = run({"good": good, "bad": bad})
    assert list(found) == ["good"]
    assert wrong == {"bad": "allreduce left 3 wrong elements"}
    assert [iteration for name, iteration in log if name == "bad"] == [0]
    with pytest.raises(WrongResult):
        run({"good": good, "ours": Entrant(good.prepare, fail)})


def test_a_wrong_result_at_the_last_call_is_not_counted_either() -> None:
    calls = []

    def fail_later() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise WrongResult("later")

    bad = Entrant(entrant("bad", []).prepare, fail_later, ours=False)
    found, wrong = run({"good": entrant("good", []), "bad": bad})
    assert list(found) == ["good"]
    assert wrong == {"bad": "later"}


def test_each_turn_is_begun_before_its_first_call() -> None:
    log: list[tuple[str, int | str]] = []
    entrants = {
        name: Entrant(
            entrant(name, log).prepare,
            lambda: None,
            begin=lambda name=name: log.append((name, "begin")),
        )
        for name in "ab"
    }
    run(entrants)
    turn = ""
    for name, what in log:
        turn = name if what == "begin" else turn
        assert name == turn
    assert [what for name, what in log if name == "a"].count("begin") > 3
