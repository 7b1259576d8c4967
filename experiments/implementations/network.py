"""A small classifier in NumPy, and generated data that it can learn.

It knows nothing of ranks: a caller names the stream of samples.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.model.workloads import CLASSIFIER as WIDTHS

_SETTERS = ("scipy_openblas_set_num_threads64_", "openblas_set_num_threads")
"""In the OpenBLAS of NumPy's wheels, and in others."""


def use_one_thread() -> bool:
    """Have this process multiply matrices on its own thread; whether there is an OpenBLAS."""
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files = {line.split()[-1] for line in mapped if "openblas" in line}
    for file in files:
        library = ctypes.CDLL(file)
        for name in _SETTERS:
            with contextlib.suppress(AttributeError):
                getattr(library, name)(1)
                return True
    return False


Matrix = NDArray[np.float32]
Labels = NDArray[np.int64]

INFORMATIVE = 24  # inputs that the classes depend on
SHARPNESS = 2.0  # of the classes' probabilities; they are not certain, so that a loss remains
MOMENTUM = 0.9


class Samples(NamedTuple):
    """Inputs, shape (samples, WIDTHS[0]), and the class of each."""

    inputs: Matrix
    labels: Labels


def samples(seed: int, stream: int, count: int) -> Samples:
    """Some samples of a task.

    Args:
        seed: of the task: how classes depend on inputs.
        stream: other samples of the same task for each.
    """
    task = np.random.default_rng(seed)
    hidden = task.normal(size=(INFORMATIVE, INFORMATIVE)) / INFORMATIVE**0.5
    classes = task.normal(size=(INFORMATIVE, WIDTHS[-1]))
    draw = np.random.default_rng((seed, stream))
    inputs = draw.normal(size=(count, WIDTHS[0])).astype("f")
    scores = SHARPNESS * np.tanh(2 * inputs[:, :INFORMATIVE] @ hidden) @ classes
    noise = draw.gumbel(size=scores.shape)  # the class is then drawn by softmax(scores)
    return Samples(inputs, (scores + noise).argmax(axis=1))


def batches_of(whole: Samples, size: int) -> list[Samples]:
    """The samples in batches of one size; views."""
    return [
        Samples(whole.inputs[at : at + size], whole.labels[at : at + size])
        for at in range(0, len(whole.labels), size)
    ]


class Network:
    """Fully connected layers, rectified, with a softmax at the end, and SGD with momentum.

    Attributes:
        parameters, gradients: weights and biases of each layer, and their gradients, which
            `backward` writes.
        flat: all gradients in one array; those of `gradients` are views of it.
        rate: of learning.
    """

    def __init__(self, seed: int, empty: Callable[[int, str], Matrix] = np.empty) -> None:
        """`empty` makes the memory of the gradients, of a length and dtype."""
        draw = np.random.default_rng(seed)
        self.parameters: list[Matrix] = []
        for low, high in itertools.pairwise(WIDTHS):
            scale = (2 / low) ** 0.5
            self.parameters += [(scale * draw.normal(size=(low, high))).astype("f")]
            self.parameters += [np.zeros(high, "f")]
        self.flat = empty(sum(parameter.size for parameter in self.parameters), "float32")
        ends = np.cumsum([parameter.size for parameter in self.parameters])
        self.gradients = [
            self.flat[end - parameter.size : end].reshape(parameter.shape)
            for parameter, end in zip(self.parameters, ends, strict=True)
        ]
        self._moments = [np.zeros_like(parameter) for parameter in self.parameters]
        self.rate = 0.05

    def backward(self, batch: Samples) -> float:
        """The mean loss of a batch; the gradients are those of it."""
        states = self._forward(batch.inputs)
        loss, error = _cross_entropy(states[-1], batch.labels)
        for layer in reversed(range(len(states) - 1)):
            weights, bias = self.gradients[2 * layer : 2 * layer + 2]
            np.matmul(states[layer].T, error, out=weights)
            error.sum(axis=0, out=bias)
            if layer:
                error = error @ self.parameters[2 * layer].T
                error *= states[layer] > 0
        return loss

    def loss(self, batch: Samples) -> float:
        """The mean loss of a batch."""
        return _cross_entropy(self._forward(batch.inputs)[-1], batch.labels)[0]

    def step(self) -> None:
        """Update the parameters."""
        for parameter, gradient, moment in zip(
            self.parameters, self.gradients, self._moments, strict=True
        ):
            moment *= MOMENTUM
            moment += gradient
            parameter -= self.rate * moment

    def copy(self) -> Network:
        """Another network with the same state."""
        copy = Network(0)
        copy.rate = self.rate
        for to, own in ((copy.parameters, self.parameters), (copy._moments, self._moments)):
            for target, source in zip(to, own, strict=True):
                np.copyto(target, source)
        return copy

    def _forward(self, inputs: Matrix) -> list[Matrix]:
        """The inputs, and what each layer makes of them."""
        states = [inputs]
        for weights, bias in zip(self.parameters[::2], self.parameters[1::2], strict=True):
            state = states[-1] @ weights
            state += bias
            if len(states) < len(WIDTHS) - 1:
                np.maximum(state, 0, out=state)
            states.append(state)
        return states


def _cross_entropy(scores: Matrix, labels: Labels) -> tuple[float, Matrix]:
    """The mean loss, and its derivative by the scores."""
    scores = scores - scores.max(axis=1, keepdims=True)
    chances = np.exp(scores)
    chances /= chances.sum(axis=1, keepdims=True)
    rows = np.arange(len(labels))
    loss = float(-np.log(np.maximum(chances[rows, labels], 1e-30)).mean())
    chances[rows, labels] -= 1
    chances /= len(labels)
    return loss, chances
