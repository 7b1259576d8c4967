"""The clock, the grouping of quick operations and the rule that stops a measurement."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from experiments.measure import timing
from experiments.measure.timing import Batch, Timer


def idle(warmup: int = timing.WARMUP) -> Timer:
    """Times nothing; reading the clock costs 49 ns."""
    return Timer(lambda _: lambda: None, MPI.COMM_SELF, 49e-9, lambda _: None, None, warmup)


def test_a_reading_of_the_clock_costs_what_most_do(monkeypatch: pytest.MonkeyPatch) -> None:
    every = itertools.accumulate(itertools.cycle([49] * 9 + [10**6]))  # some are interrupted
    monkeypatch.setattr(timing, "CLOCK", lambda: next(every))
    assert timing.clock_cost() == pytest.approx(49e-9)


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1e-6))
def test_a_group_is_the_smallest_that_keeps_the_clock_cheap(seconds: float, cost: float) -> None:
    group = timing.group_size(seconds, cost)
    assert group.bit_count() == 1
    assert cost <= timing.CLOCK_SHARE * seconds * group * (1 + 1e-9)
    assert group == 1 or cost > timing.CLOCK_SHARE * seconds * (group // 2) * (1 - 1e-9)


def test_launches_that_differ_a_little_group_alike() -> None:
    assert {timing.group_size(seconds, 50e-9) for seconds in np.linspace(0.26e-6, 0.49e-6)} == {8}


def test_the_quickest_rank_decides_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its median over all warm-ups: one rank's quick turn here and there is no quick rank."""
    warm = np.full((10, 2), 1e-6)
    warm[::2, 0] = warm[1::2, 1] = 0.1e-6
    warm[0] = warm[1] = 1e-6
    monkeypatch.setattr(Timer, "_batch", lambda *_: Batch(warm, np.zeros((10, 2), np.int64)))
    timer = idle()
    assert (timer.group, timer.seconds) == (2, 1e-6)


def test_many_samples_or_equal_ones_are_narrow() -> None:
    scatter = np.random.default_rng(1).standard_normal(5000)
    for case, samples, narrow in (
        ("one", np.ones(1), False),
        ("a handful", np.ones(5), False),
        ("equal", np.ones(20), True),
        ("scattered", np.linspace(1, 2, 20), False),
        ("many scattered", 1 + 0.2 * scatter, True),
    ):
        assert timing.is_narrow(samples) == narrow, case


@pytest.mark.parametrize("has_gate", [True, False])
def test_turns_begin_with_operations_that_do_not_count_and_all_are_reported(has_gate: bool) -> None:
    done: list[int] = []
    shown: list[int] = []
    gates: list[int] = []
    timer = Timer(
        lambda iteration: lambda: done.append(iteration),
        MPI.COMM_SELF,
        50e-9,
        shown.append,
        (lambda: gates.append(len(done))) if has_gate else None,
    )
    assert len(done) == sum(shown) == timing.WARMUP
    for _ in range(3):
        timer.turn(50, 2)
    samples = timer.samples()
    assert (samples.group, samples.turn, samples.seconds.shape) == (2, 50, (175, 1))
    assert samples.warmup == timing.WARMUP + 3 * 5
    assert len(done) == sum(shown) == timing.WARMUP + 3 * 2 * 55
    assert len(gates) == (175 if has_gate else 0)
    assert sorted(set(done)) == list(range(175))  # every interval has buffers of its own
    counted = samples.seconds[samples.warmup :].max(axis=1)
    assert timer.is_narrow() == timing.is_narrow(counted)


def test_an_mpi_that_tunes_itself_has_longer_to_warm_up_and_its_last_operations_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow_then_tuned = np.where(np.arange(64) < 54, 1e-3, 1e-6)[:, np.newaxis]
    usual = Timer._batch
    monkeypatch.setattr(
        Timer, "_batch", lambda *asked: usual(*asked)._replace(seconds=slow_then_tuned)
    )
    timer = idle(64)
    assert (timer.group, timer.seconds) == (2, 1e-6)
    assert timer.samples().warmup == 64


def test_those_that_do_not_count_are_kept_first(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10))

    def batch(_: Timer, count: int, between: int = 0) -> Batch:
        number = next(numbers)
        begins = 1_000_000_000 * number + 1000 * np.arange(count)[:, np.newaxis]
        return Batch(np.full((count, 1), float(number)), begins)

    monkeypatch.setattr(Timer, "_batch", batch)
    timer = idle()
    timer.turn(4, 1)
    timer.turn(4, 1)
    samples = timer.samples()
    assert samples.seconds[: samples.warmup, 0].tolist() == [0] * 10 + [1] * 2 + [3] * 2
    assert samples.seconds[samples.warmup :, 0].tolist() == [2] * 4 + [4] * 4
    assert samples.began == (2_000_000_000, 4_000_000_000)
    assert samples.begin[samples.warmup :, 0] == pytest.approx([0, 1e-6, 2e-6, 3e-6] * 2)


def test_intervals_that_are_not_timed_come_before_each_that_is() -> None:
    done: list[tuple[int, int]] = []
    shown: list[int] = []
    timer = Timer(
        lambda iteration: lambda: done.append((iteration, timing.CLOCK())),
        MPI.COMM_SELF,
        50e-9,
        shown.append,
        None,
    )
    assert timer.pace > 0
    del done[:], shown[:]
    assert timer.turn(5, 2, between=3) == len(done) == sum(shown) == 2 * (timing.FIRST + 5 * 4)
    (batch,) = timer._timed
    assert batch.seconds.shape == batch.begins.shape == (5, 1)
    timed = done[2 * timing.FIRST :: 2][3::4]  # the first operation of each timed interval
    assert all(begin < at for begin, (_, at) in zip(batch.begins[:, 0], timed, strict=True))
    assert all(at < begin for begin, (_, at) in zip(batch.begins[1:, 0], timed, strict=False))
    numbers = [iteration for iteration, _ in done[::2]]
    assert numbers == list(range(timing.WARMUP, timing.WARMUP + timing.FIRST + 5 * 4))


def test_an_interval_begins_after_the_one_before_has_ended() -> None:
    timer = idle()
    timer.turn(50, 3)
    before = timing.CLOCK()
    (batch,) = timer._timed
    assert (batch.begins[1:] >= batch.begins[:-1] + 3e9 * batch.seconds[:-1] - 1).all()
    assert batch.begins[-1, 0] < before


def test_begins_are_kept_to_a_few_nanoseconds_over_a_turn() -> None:
    begins = np.array([[10**18, 10**18 + 250], [10**18 + 20_000_000, 10**18 + 20_000_400]])
    kept = timing.Batch(np.ones((2, 2)), begins).offsets()
    assert kept.dtype == np.float32
    assert np.ptp(kept, axis=1) == pytest.approx([250e-9, 400e-9], abs=4e-9)
