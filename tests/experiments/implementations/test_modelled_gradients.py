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


@pytest.mark.parametrize("operation", [each for each in MODELLED if MODELLED[each].network])
def test_a_plan_has_the_bytes_of_its_workload_and_the_time_of_its_network(operation: str) -> None:
    network = MODELLED[operation].network
    layers = step_plan.layers(network)
    assert sum(each.nbytes for each in layers) == MODELLED[operation].nbytes
    backward = sum(each.seconds for each in layers)
    assert backward == pytest.approx(2 * step_plan.forward_seconds(network))
    found = buckets(layers, step_plan.BUCKET)
    assert sum(each.nbytes for each in found) == MODELLED[operation].nbytes
    assert all(each.nbytes >= step_plan.BUCKET for each in found[:-1])
