"""Steps with emulated computation exchange all gradients, and their check sees what is missing."""

from pathlib import Path

import pytest

from experiments.implementations import step_plan
from experiments.model.workloads import MODELLED
from hbmcomm.costmodel import buckets
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "modelled_gradients.py"


@pytest.mark.ranks
def test_every_way_exchanges_all_gradients_and_both_operations_of_trees_are_right(
    mpirun: Start,
) -> None:
    assert mpirun(PROGRAM, 2).output.split().count("right") == 2


@pytest.mark.parametrize("operation", [name for name in MODELLED if MODELLED[name].network])
def test_a_plan_has_the_bytes_of_its_workload_and_the_time_of_its_network(operation: str) -> None:
    network = MODELLED[operation].network
    layers = step_plan.layers(network)
    assert sum(layer.nbytes for layer in layers) == MODELLED[operation].nbytes
    backward = sum(layer.seconds for layer in layers)
    assert backward == pytest.approx(2 * step_plan.forward_seconds(network))
    all_buckets = buckets(layers, step_plan.BUCKET)
    assert sum(bucket.nbytes for bucket in all_buckets) == MODELLED[operation].nbytes
    assert all(bucket.nbytes >= step_plan.BUCKET for bucket in all_buckets[:-1])
