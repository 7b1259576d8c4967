"""The gradient tensors of networks: published totals, and what unknown names get."""

import csv
from pathlib import Path

import pytest

from hbmcomm.training import networks
from hbmcomm.training.networks import NETWORKS, gradients

# parameters as the papers and the model collections of their frameworks give them
PUBLISHED = {
    "alexnet": (16, 61_100_840),
    "vgg16": (32, 138_357_544),
    "resnet50": (161, 25_557_032),
    "mobilenet_v1": (83, 4_231_976),
    "gpt2_small": (148, 124_439_808),
}


@pytest.mark.parametrize("model", PUBLISHED)
def test_tensors_and_elements_are_those_of_the_published_network(model: str) -> None:
    tensors = gradients(model)
    assert (len(tensors), sum(elements for _, elements in tensors)) == PUBLISHED[model]


def test_every_network_of_the_table_is_known_and_its_names_are_unique() -> None:
    table = Path(networks.__file__).with_name("gradient_tensors.csv")
    with table.open(newline="") as lines:
        assert {row["model"] for row in csv.DictReader(lines)} == set(NETWORKS)
    for model in NETWORKS:
        names = [name for name, _ in gradients(model)]
        assert len(set(names)) == len(names) > 10
        assert all(elements > 0 for _, elements in gradients(model))


def test_an_unknown_network_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="unknown network 'lenet'; known: alexnet, "):
        gradients("lenet")
