"""Many nodes: the algorithm that takes least time, and what it adds to the time of one node."""

import pytest

from hbmcomm.costmodel import (
    CostModelError,
    Model,
    Network,
    Parameters,
    Part,
    best_algorithm,
    known,
    messages_seconds,
    network,
    seconds_on,
)

SLOW = Network(0.0, 1e6)
PART = Part("shared", Parameters(1e-6, 5.0, 0.0, 1.0, 1.2, 0.0))
MODELS = {
    name: Model(name, "regular", 0.1, 0, PART, PART) for name in ("bcast", "reduce", "allreduce")
}


def test_a_tree_serves_eight_ranks_in_three_rounds_and_a_flat_root_in_seven() -> None:
    for operation in ("bcast", "reduce"):
        tree, flat = (
            messages_seconds(operation, name, 8, 10**6, SLOW, 0.0) for name in ("binomial", "flat")
        )
        assert (tree, flat) == (3.0, 7.0)


def test_short_messages_take_few_rounds_and_long_ones_few_bytes() -> None:
    for name in ("10gbit", "400gbit"):
        assert best_algorithm("allreduce", 64, 8, network(name), 0)[1] == "recursive-doubling"
        long = best_algorithm("allreduce", 64, 2**28, network(name), 0)[1]
        assert long in ("rabenseifner", "ring", "chain"), name


def test_more_nodes_take_longer_and_a_faster_network_less() -> None:
    def seconds(nodes: int, name: str, kind: str = "hbw") -> float:
        where = ("allreduce", MODELS, known("knl"), network(name))
        return seconds_on(*where, nodes=nodes, ranks=16, nbytes=10**8, kind=kind)

    every = [seconds(nodes, "100gbit") for nodes in (1, 2, 16, 10_000)]
    assert every == sorted(every)
    assert seconds(16, "400gbit") < seconds(16, "10gbit")
    assert seconds(16, "400gbit") < seconds(16, "400gbit", "regular")


def test_an_allreduce_stands_in_for_a_reduce_that_was_not_measured() -> None:
    few = {name: MODELS[name] for name in ("bcast", "allreduce")}
    slower, faster = (
        seconds_on(
            "allreduce", models, known("knl"), network("100gbit"), nodes=4, ranks=4, nbytes=10**7
        )
        for models in (few, MODELS)
    )
    assert slower >= faster


def test_unknown_operations_algorithms_and_missing_models_are_refused() -> None:
    with pytest.raises(CostModelError, match="no algorithm 'torus' of 'bcast'"):
        messages_seconds("bcast", "torus", 4, 1, SLOW, 0)
    with pytest.raises(CostModelError, match="name one of bcast, reduce, allreduce"):
        seconds_on("gather", MODELS, known("knl"), SLOW, nodes=2, ranks=2, nbytes=1)
    with pytest.raises(CostModelError, match="needs models of reduce, bcast"):
        seconds_on("allreduce", {}, known("knl"), SLOW, nodes=2, ranks=2, nbytes=1)
