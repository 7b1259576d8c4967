"""A fit finds the parameters that times were made of, and says what it cannot do."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmcomm.costmodel import CostModelError, Machine, Memory, Model, Parameters, Part, Sample, fit
from hbmcomm.costmodel.fitting import first_least, nonnegative

SIZES = [2**power for power in range(6, 25, 3)]
RANKS = (2, 4, 16)
NEAR = Memory((1, 16), (1e10, 16e10))
MACHINE = Machine("test", 16, 1, 32 * 2**20, NEAR, {"regular": Memory((1, 8), (8e9, 4e10))}, 1e-7)


def times(model: Model, noise: float = 0.0) -> list[Sample]:
    rng = np.random.default_rng(1)
    return [
        Sample(ranks, size, model.seconds(ranks, size, MACHINE) * rng.lognormal(0, noise))
        for ranks in RANKS
        for size in SIZES
    ]


def worst(model: Model, samples: list[Sample]) -> float:
    return max(
        abs(model.seconds(sample.ranks, sample.nbytes, MACHINE) / sample.seconds - 1)
        for sample in samples
    )


def made(algorithm: str, operation: str = "allreduce") -> Model:
    part = Part(algorithm, Parameters(8e-7, 4.0, 0, 1.5, 1.2, 0))
    return Model(operation, "regular", 0.5, 0, part, part)


def test_times_of_a_model_are_found_again_by_transport_direct() -> None:
    true = made("shared")
    model = fit("allreduce", times(true), MACHINE, shared=True)
    assert worst(model, times(true)) < 0.05


@pytest.mark.parametrize("algorithm", ["flat", "ring", "rabenseifner"])
def test_the_algorithm_that_times_are_made_of_is_recognised(algorithm: str) -> None:
    true = made(algorithm)
    model = fit("allreduce", times(true, 0.02), MACHINE, shared=False)
    assert model.long.algorithm == algorithm
    assert worst(model, times(true)) < 0.1


def test_short_and_long_messages_can_take_two_algorithms() -> None:
    true = made("ring")
    true = true._replace(switch=4096, short=made("recursive-doubling").short)
    model = fit("allreduce", times(true, 0.01), MACHINE, shared=False)
    assert model.switch == 4096
    assert model.long.algorithm == "ring"
    assert model.short.algorithm in ("recursive-doubling", "binomial")  # twice as much of the same


def test_only_the_algorithm_that_is_named_is_fitted() -> None:
    model = fit("bcast", times(made("ring", "bcast")), MACHINE, shared=False, only="flat")
    assert {model.short.algorithm, model.long.algorithm} == {"flat"}


def test_no_rank_waits_for_itself() -> None:
    assert made("ring").seconds(1, 1024, MACHINE) == 0


def test_half_as_fast_a_memory_doubles_what_is_in_no_cache() -> None:
    model = made("shared")
    slow = replace(MACHINE, memories={"regular": Memory((1, 8), (4e9, 2e10))})
    large, small = 2**30, 2**10
    assert model.seconds(4, large, slow) == pytest.approx(
        2 * model.seconds(4, large, MACHINE), rel=0.01
    )
    assert model.seconds(4, small, slow) == model.seconds(4, small, MACHINE)


def test_a_message_whose_turn_comes_after_many_others_is_in_no_cache() -> None:
    model = made("shared")
    warm, cold = (model.seconds(4, 2**16, MACHINE, cycle=cycle) for cycle in (0, 2**30))
    assert cold > 1.2 * warm
    assert model.seconds(4, 2**30, MACHINE, cycle=2**31) == model.seconds(4, 2**30, MACHINE)


@given(st.lists(st.floats(0.0, 5.0), min_size=3, max_size=3), st.integers(4, 12))
@settings(max_examples=40)
def test_weights_are_never_negative_and_explain_what_they_made(
    weights: list[float], rows: int
) -> None:
    rng = np.random.default_rng(rows)
    columns = rng.random((rows, 3)) + 0.01
    total = columns @ (np.array(weights) + 0.01)
    squares, freedom, fitted = nonnegative(columns / total[:, None])
    assert (fitted >= 0).all()
    assert freedom == (fitted > 0).sum()
    assert squares / rows < 0.05**2


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([Sample(2, 1024, 1e-6)] * 9, "9 times of 1 lengths were given"),
        ([Sample(2, 1024, 1e-6), Sample(2, 4096, 1e-6)], "measure at least 3 times"),
        ([Sample(2, nbytes, math.nan) for nbytes in (1, 2, 3, 4)], "is not a time of a collective"),
        ([Sample(1, nbytes, 1e-6) for nbytes in (1, 2, 3, 4)], "2 ranks or more"),
        ([Sample(2, nbytes, 1e-6) for nbytes in (0, 0, 8)], "at least 1 byte"),
    ],
)
def test_what_cannot_be_fitted_is_refused_with_the_reason(
    samples: list[Sample], message: str
) -> None:
    with pytest.raises(CostModelError, match=message):
        fit("bcast", samples, MACHINE, shared=True)


def test_unknown_names_are_refused_with_those_that_are_known() -> None:
    with pytest.raises(CostModelError, match="name one of bcast"):
        fit("alltoall", times(made("ring")), MACHINE, shared=True)
    with pytest.raises(CostModelError, match="name one of flat"):
        fit("bcast", times(made("ring")), MACHINE, shared=False, only="torus")


def test_of_criteria_that_differ_by_rounding_the_first_is_taken() -> None:
    assert first_least([3.0, 1.0, 1.0 - 1e-9, 2.0]) == 1
    assert first_least([3.0, 1.0, 0.9]) == 2
