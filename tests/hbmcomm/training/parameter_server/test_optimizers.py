"""Serial optimisers follow their formulas, and the kernels in C have their bits."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hbmcomm.training.parameter_server import SGD, Adam, AdamW, Momentum, Nesterov, Optimizer
from hbmcomm.training.parameter_server.kernels import ffi, lib, pointers

OPTIMIZERS = [SGD(0.1), Momentum(0.1, 0.8), Nesterov(0.1, 0.8), Adam(0.1), AdamW(0.1, decay=0.2)]
VALUES = st.floats(-1e3, 1e3, width=32)


def kernel(optimizer: Optimizer, step: int, scale: float, arrays: list[Any]) -> None:
    """One step in C, in place, of a gradient, weights and state."""
    how = {"code": getattr(lib, optimizer.code), "scale": scale}
    how |= optimizer.coefficients(step)._asdict()
    gradient, weights, first, second = [*pointers(arrays), ffi.NULL, ffi.NULL][:4]
    how = ffi.new("ps_optimizer *", how)
    gradients = ffi.new("void *[]", [gradient])
    lib.ps_optimize(how, gradients, 1, ffi.NULL, weights, first, second, arrays[0].size)


@given(
    optimizer=st.sampled_from(OPTIMIZERS),
    gradients=arrays("float32", st.tuples(st.integers(1, 4), st.integers(1, 70)), elements=VALUES),
    scale=st.sampled_from([1.0, 1 / 3]),
)
def test_kernels_have_the_bits_of_numpy(
    optimizer: Optimizer, gradients: np.ndarray[Any, Any], scale: float
) -> None:
    shape = gradients.shape[1:]
    serial = [np.zeros(shape, "float32") for _ in range(1 + optimizer.states)]
    native = [array.copy() for array in serial]
    for step, gradient in enumerate(gradients, 1):
        optimizer.apply(serial[0], gradient, serial[1:], step, scale)
        kernel(optimizer, step, scale, [gradient, *native])
        for one, other in zip(serial, native, strict=True):
            assert one.dtype == np.float32 and one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("optimizer", "expected"),
    [
        # two steps from weight 1 with gradient 0.5, by hand
        (SGD(0.1), 1 - 2 * 0.1 * 0.5),
        (Momentum(0.1, 0.8), 1 - 0.1 * 0.5 - 0.1 * (0.8 * 0.5 + 0.5)),
        (Nesterov(0.1, 0.8), 1 - 0.1 * (0.5 + 0.8 * 0.5) - 0.1 * (0.5 + 0.8 * 0.9)),
        (Adam(0.1), 1 - 2 * 0.1),  # a constant gradient: each step is one of lr
        (AdamW(0.1, decay=0.2), (1 * 0.98 - 0.1) * 0.98 - 0.1),
    ],
)
def test_two_steps_by_hand(optimizer: Optimizer, expected: float) -> None:
    weights, gradient = np.ones(1, "float32"), np.full(1, 0.5, "float32")
    state = [np.zeros(1, "float32") for _ in range(optimizer.states)]
    for step in (1, 2):
        optimizer.apply(weights, gradient, state, step)
    assert weights[0] == pytest.approx(expected, rel=1e-5)
