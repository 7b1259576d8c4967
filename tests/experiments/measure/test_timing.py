"""The clock, the grouping of quick operations and the rule that stops a measurement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.measure import timing


def test_reading_the_clock_costs_something_and_far_less_than_a_microsecond_or_two() -> None:
    assert 0 < timing.clock_cost() < 1e-4


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1e-6))
def test_a_group_is_the_smallest_that_keeps_the_clock_below_its_share(
    seconds: float, cost: float
) -> None:
    group = timing.group_size(seconds, cost)
    assert cost <= timing.CLOCK_SHARE * seconds * group * (1 + 1e-9)
    assert group == 1 or cost > timing.CLOCK_SHARE * seconds * (group - 1) * (1 - 1e-9)


@pytest.mark.parametrize("n", [1, 5])
def test_a_handful_of_samples_is_never_enough(n: int) -> None:
    assert not timing.is_narrow(np.ones(n))


def test_equal_samples_are_narrow_and_scattered_ones_are_not() -> None:
    assert timing.is_narrow(np.ones(20))
    assert not timing.is_narrow(np.linspace(1, 2, 20))


def test_many_scattered_samples_become_narrow() -> None:
    rng = np.random.default_rng(1)
    assert timing.is_narrow(1 + 0.2 * rng.standard_normal(5000))
