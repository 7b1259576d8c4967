"""The network that DASO trains has right gradients and a task that can be learned; its table."""

import numpy as np
import pytest

from experiments.implementations.daso_seeds import to_table
from experiments.implementations.network import Network, batches_of, samples, use_one_thread
from experiments.model.workloads import DASO_STEP, WORKLOADS


def test_the_cell_has_the_bytes_of_the_networks_gradients() -> None:
    network = Network(1)
    assert network.flat.nbytes == WORKLOADS[DASO_STEP].nbytes
    assert sum(gradient.nbytes for gradient in network.gradients) == network.flat.nbytes


def test_gradients_are_the_slopes_of_the_loss() -> None:
    network, batch = Network(2), samples(2, 0, 16)
    network.backward(batch)
    draw = np.random.default_rng(3)
    for parameter, gradient in zip(network.parameters, network.gradients, strict=True):
        way = draw.normal(size=parameter.shape).astype("f")
        before, length = parameter.copy(), 1e-2 / np.linalg.norm(way)
        parameter += length * way
        above = network.loss(batch)
        parameter[...] = before - length * way
        below = network.loss(batch)
        parameter[...] = before
        slope = (above - below) / (2 * length)
        assert slope == pytest.approx(float((gradient * way).sum()), rel=0.05, abs=5e-3)


def test_matrices_are_multiplied_on_one_thread() -> None:
    assert use_one_thread()


def test_the_task_can_be_learned() -> None:
    network, unseen = Network(3), samples(3, 1, 512)
    before = network.loss(unseen)
    for batch in batches_of(samples(3, 0, 60 * 64), 64):
        network.backward(batch)
        network.step()
    assert network.loss(unseen) < before - 0.3


def test_each_seed_has_a_row_and_the_last_row_has_medians() -> None:
    table = to_table({1: {"s": 1.0}, 4: {"s": 2.0}, 5: {"s": 9.0}}).splitlines()
    assert table[0] == "| seed | s |" and table[1] == "| --- | --- |"
    assert table[2:] == ["| 1 | 1.000 |", "| 4 | 2.000 |", "| 5 | 9.000 |", "| median | 2.000 |"]
