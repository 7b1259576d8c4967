"""The clock, the grouping of quick operations and the rule that stops a measurement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpi4py import MPI

from experiments.measure import timing
from experiments.spec import Measurement


def test_reading_the_clock_costs_something_and_far_less_than_a_microsecond_or_two() -> None:
    assert 0 < timing.clock_cost() < 1e-4


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1e-6))
def test_a_group_is_the_smallest_power_of_two_that_keeps_the_clock_below_its_share(
    seconds: float, cost: float
) -> None:
    group = timing.group_size(seconds, cost)
    assert group.bit_count() == 1
    assert cost <= timing.CLOCK_SHARE * seconds * group * (1 + 1e-9)
    assert group == 1 or cost > timing.CLOCK_SHARE * seconds * (group // 2) * (1 - 1e-9)


def test_launches_that_differ_a_little_group_alike() -> None:
    assert {timing.group_size(seconds, 50e-9) for seconds in np.linspace(0.26e-6, 0.49e-6)} == {4}


def test_the_quickest_rank_decides_the_group() -> None:
    """Its median over all warm-ups: one rank's quick turn here and there is no quick rank."""
    asked = Measurement()
    turns = np.full((10, 2), 1e-6)
    turns[::2, 0] = turns[1::2, 1] = 0.1e-6
    turns[0] = turns[1] = 1e-6
    assert timing._plan(turns, MPI.COMM_SELF, asked, 49e-9)[1] == 1


@pytest.mark.parametrize("n", [1, 5])
def test_a_handful_of_samples_is_never_enough(n: int) -> None:
    assert not timing.is_narrow(np.ones(n))


def test_equal_samples_are_narrow_and_scattered_ones_are_not() -> None:
    assert timing.is_narrow(np.ones(20))
    assert not timing.is_narrow(np.linspace(1, 2, 20))


def test_many_scattered_samples_become_narrow() -> None:
    rng = np.random.default_rng(1)
    assert timing.is_narrow(1 + 0.2 * rng.standard_normal(5000))


@pytest.mark.parametrize("cadence", ["isolated", "streaming"])
def test_every_operation_is_told_batch_by_batch(cadence: str) -> None:
    done, told, gates = [], [], []
    asked = Measurement(cadence=cadence, time_cap=0.02, min_iterations=6, max_iterations=50)
    found = timing.measure(
        lambda iteration: lambda: done.append(iteration),
        MPI.COMM_SELF,
        asked,
        cost=50e-9,
        tick=lambda operations: told.append((operations, len(done))),
        gate=lambda: gates.append(len(done)),
    )
    assert (gates == []) == (cadence == "streaming")
    assert len(gates) in (0, len(found.seconds))
    assert [so_far for _, so_far in told] == list(np.cumsum([each for each, _ in told]))
    assert told[0] == (10, 10)
    assert told[-1][1] == len(done) == 10 + (len(found.seconds) - 10) * found.group
