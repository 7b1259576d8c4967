"""Optimisers: their coefficients for each step, and the same arithmetic in NumPy, serially.

`apply` and the kernels in C (update.c) round after every operation, in the same order,
in float32: both give the same bits. Coefficients are computed in double precision and rounded once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Coefficients(NamedTuple):
    """What a step multiplies with; ps_optimizer of update.h has the same fields."""

    rate: float
    keep: float = 1.0
    decay1: float = 0.0
    rest1: float = 0.0
    decay2: float = 0.0
    rest2: float = 0.0
    root: float = 0.0
    epsilon: float = 0.0


class Optimizer(ABC):
    """Turns a gradient into new weights. All owners of a job must have equal ones at each step."""

    code: ClassVar[str]
    """Its name in update.h."""
    states: ClassVar[int]
    """Arrays of the length of the weights that it keeps, zero before the first step."""
    lr: float
    """The learning rate; it may be changed between steps, on all owners alike."""

    @abstractmethod
    def coefficients(self, step: int) -> Coefficients:
        """What step number `step` multiplies with; the first is 1."""

    @abstractmethod
    def advance(self, c: Coefficients, weights: Floats, g: Floats, state: Sequence[Floats]) -> None:
        """One step in NumPy, in place; `g` is scaled. NumPy rounds Python's floats to float32."""

    def apply(
        self,
        weights: Floats,
        gradient: Floats,
        state: Sequence[Floats],
        step: int,
        scale: float = 1.0,
    ) -> None:
        """One step in NumPy, serially, with the bits of the parameter server.

        Args:
            weights: Updated in place; float32.
            gradient: The sum over the workers: ((g0 + g1) + g2) + ..., in float32.
            state: `states` arrays of the same shape, updated in place.
            step: Its number, from 1 on.
            scale: Multiplies the gradient first; 1 / workers averages it.
        """
        self.advance(self.coefficients(step), weights, gradient * scale, state)


@dataclass
class SGD(Optimizer):
    """w = w - lr g."""

    lr: float
    code: ClassVar[str] = "PS_SGD"
    states: ClassVar[int] = 0

    def coefficients(self, step: int) -> Coefficients:
        return Coefficients(self.lr)

    def advance(self, c: Coefficients, weights: Floats, g: Floats, state: Sequence[Floats]) -> None:
        weights -= c.rate * g


@dataclass
class Momentum(Optimizer):
    """m = momentum m + g; w = w - lr m."""

    lr: float
    momentum: float = 0.9
    code: ClassVar[str] = "PS_MOMENTUM"
    states: ClassVar[int] = 1

    def coefficients(self, step: int) -> Coefficients:
        return Coefficients(self.lr, decay1=self.momentum)

    def advance(self, c: Coefficients, weights: Floats, g: Floats, state: Sequence[Floats]) -> None:
        (m,) = state
        m[...] = c.decay1 * m + g
        weights -= c.rate * m


@dataclass
class Nesterov(Momentum):
    """m = momentum m + g; w = w - lr (g + momentum m)."""

    code: ClassVar[str] = "PS_NESTEROV"

    def advance(self, c: Coefficients, weights: Floats, g: Floats, state: Sequence[Floats]) -> None:
        (m,) = state
        m[...] = c.decay1 * m + g
        weights -= c.rate * (g + c.decay1 * m)


@dataclass
class Adam(Optimizer):
    """m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g g; then, with t the step,
    w = w - lr / (1 - beta1^t) (m / (sqrt(v) / sqrt(1 - beta2^t) + epsilon))."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    code: ClassVar[str] = "PS_ADAM"
    states: ClassVar[int] = 2

    def coefficients(self, step: int) -> Coefficients:
        return Coefficients(
            self.lr / (1 - self.beta1**step),
            self._keep(),
            self.beta1,
            1 - self.beta1,
            self.beta2,
            1 - self.beta2,
            1 / math.sqrt(1 - self.beta2**step),
            self.epsilon,
        )

    def _keep(self) -> float:
        return 1.0

    def advance(self, c: Coefficients, weights: Floats, g: Floats, state: Sequence[Floats]) -> None:
        m, v = state
        m[...] = c.decay1 * m + c.rest1 * g
        v[...] = c.decay2 * v + c.rest2 * (g * g)
        weights[...] = weights * c.keep - c.rate * (m / (np.sqrt(v) * c.root + c.epsilon))


@dataclass
class AdamW(Adam):
    """Adam with decay of the weights apart from the gradient: w is first w (1 - lr decay)."""

    decay: float = 0.01

    def _keep(self) -> float:
        return 1 - self.lr * self.decay
