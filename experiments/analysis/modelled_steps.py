"""Measured training steps beside what a model of their exchanges predicts."""

from typing import Any

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.cost_cells import DIRECT, MPI
from experiments.analysis.cost_evaluation import Evaluation
from experiments.analysis.selection import rows
from experiments.implementations import step_plan
from experiments.model.workloads import AFTERWARDS, MODELLED, MPI_LAYERWISE
from hbmcomm import costmodel


def steps(campaign: Campaign, evaluation: Evaluation) -> pd.DataFrame:
    """One row per network and way: `computation`, `communication`, `model`, `seconds` (measured)
    and `error`, relative; empty where the campaign has no steps.

    The model of the exchanges is fitted on exchanges alone: no step is known to it.
    """
    names = [name for name, workload in MODELLED.items() if workload.network]
    cells = campaign.cells[campaign.cells["operation"].isin(names)]
    keys = ["mpi", "operation", "transport", "ranks"]
    measured = cells.groupby(keys, as_index=False)[["median_s"]].median()
    steps = []
    for row in rows(measured):
        carrier = MPI if row.transport == MPI_LAYERWISE else DIRECT
        if model := evaluation.models.get((row.mpi, carrier, "allreduce")):
            steps.append(_step(row, model, evaluation.machine))
    return pd.DataFrame(steps)


def _step(row: Any, model: costmodel.Model, machine: costmodel.Machine) -> dict[str, object]:
    network, way = MODELLED[row.operation].network, row.transport
    ranks, seconds = int(row.ranks), float(row.median_s)
    layers = step_plan.layers(network)
    cycle = sum(layer.nbytes for layer in layers)
    predicted = costmodel.step(
        layers,
        lambda nbytes: model.seconds(ranks, nbytes, machine, cycle=cycle),
        forward=step_plan.forward_seconds(network),
        bucket=step_plan.BUCKET,
        overlapped=way != AFTERWARDS,
    )
    return {
        "network": network,
        "way": way,
        "ranks": ranks,
        "computation": predicted.computation,
        "communication": predicted.communication,
        "model": predicted.whole,
        "seconds": seconds,
        "error": abs(predicted.whole / seconds - 1),
    }
