"""What-if: another machine's memory and network in place of the measured ones."""

import math
from collections.abc import Sequence
from itertools import product

import pandas as pd

from experiments.analysis.cost_cells import DIRECT, CannotModel
from experiments.analysis.cost_evaluation import Evaluation
from hbmcomm import costmodel
from hbmcomm.training.networks import gradients

RANKS = 16  # of a node, the paper's most
NETWORK = "resnet50"
NBYTES = 4 * sum(elements for _, elements in gradients(NETWORK))
"""Bytes of its gradients, which an allreduce of all nodes exchanges."""
MESSAGE = 16 * 2**20  # bytes of a rank, the paper's most
BAND = (0.1, 0.9)
"""Quantiles of measured over predicted times on the half that models were not fitted on."""
PLACEMENTS = {"spread over the nodes": False, "packed into one node": True}
"""By name, whether ranks fill one NUMA node after the other."""
KINDS = ("regular", "hbw")
MACHINES = tuple(costmodel.MACHINES)
NETWORKS = tuple(costmodel.NETWORKS)
MOST_NODES = 10_000
PAPERS = "knl"
"""The machine of the paper that this project reproduces."""


def band(evaluation: Evaluation) -> tuple[float, float]:
    """How far times are from the prediction, as factors: the ends of BAND, of transport direct."""
    held = evaluation.held_out
    held = held[(held["transport"] == DIRECT) & held["model"].notna()]
    ratios = held["seconds"] / held["model"]
    return float(ratios.quantile(BAND[0])), float(ratios.quantile(BAND[1]))


def speedups(evaluation: Evaluation, name: str) -> pd.DataFrame:
    """Time in regular memory over time in HBM of a named machine: `placement`, `operation`,
    `ranks`, `ratio`; messages of MESSAGE bytes.

    The errors of both times are the same model's and cancel, so there is no band.

    Raises:
        CostModelError: no machine has the name.
        CannotModel: the campaign has no times of transport direct.
    """
    there, models = costmodel.known(name), _models(evaluation)
    counts = [count for count in (2, 4, 8, 16, 32, 64) if count <= there.cores]
    return pd.DataFrame(
        [
            {
                "placement": placement,
                "operation": operation,
                "ranks": ranks,
                "ratio": _ratio(model, there, ranks, packed),
            }
            for placement, packed in PLACEMENTS.items()
            for operation, model in models.items()
            for ranks in counts
            if there.nodes > 1 or not packed
        ]
    )


def _ratio(model: costmodel.Model, there: costmodel.Machine, ranks: int, packed: bool) -> float:
    regular, hbw = (
        model.seconds(ranks, MESSAGE, there, kind=kind, packed=packed) for kind in KINDS
    )
    return regular / hbw


def scaling(evaluation: Evaluation, name: str, networks: Sequence[str], most: int) -> pd.DataFrame:
    """Allreduce of NBYTES on 1 to `most` nodes: `network`, `kind`, `nodes`, `seconds`, and the
    ends of the band, `low` and `high`.

    Raises:
        CostModelError: no machine, or no network, has the name.
        CannotModel: the campaign lacks times that a model is needed of.
    """
    there, models = costmodel.known(name), _models(evaluation)
    between = {network: costmodel.network(network) for network in networks}
    low, high = band(evaluation)
    ranks = min(RANKS, there.cores)
    columns = ["network", "kind", "nodes"]
    lines = pd.DataFrame(product(networks, KINDS, _counts(most)), columns=columns)
    try:
        lines["seconds"] = [
            costmodel.seconds_on(
                "allreduce",
                models,
                there,
                between[network],
                nodes=nodes,
                ranks=ranks,
                nbytes=NBYTES,
                kind=kind,
            )
            for network, kind, nodes in lines.itertuples(index=False)
        ]
    except costmodel.CostModelError as error:
        raise CannotModel(str(error)) from error
    return lines.assign(low=low * lines["seconds"], high=high * lines["seconds"])


def _counts(most: int) -> list[int]:
    """1, 2, 5, 10, 20 ... and the last."""
    steps = (
        mantissa * 10**power
        for power in range(math.ceil(math.log10(max(most, 2))))
        for mantissa in (1, 2, 5)
    )
    return [*(step for step in steps if step < most), most]


def _models(evaluation: Evaluation) -> dict[str, costmodel.Model]:
    """The models of transport direct by operation, of the first MPI that has one."""
    models = {
        operation: model
        for (_, transport, operation), model in reversed(evaluation.models.items())
        if transport == DIRECT
    }
    if not models:
        raise CannotModel(
            "the campaign has no times of transport direct, which what-if is about; measure some: "
            "./inv run --experiment model"
        )
    return models


def machine_name(name: str) -> str:
    """As readers know it."""
    return costmodel.known(name).name


def subject(name: str) -> str:
    """What an extrapolation to many nodes is about."""
    ranks = min(RANKS, costmodel.known(name).cores)
    return f"{machine_name(name)}, {ranks} ranks a node, gradients of {NETWORK}"
