"""Cost models fitted on a half of a campaign, and how far they are from the rest of it.

No model is fitted on the other half of the collectives, nor on any training step.
"""

import contextlib
import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments.analysis.campaign import Campaign
from experiments.analysis.cost_cells import DIRECT, MPI, CannotModel, Measured
from experiments.analysis.selection import places, rows
from experiments.implementations import step_plan
from experiments.model.contender_names import CALLS
from experiments.model.workloads import AFTERWARDS, MODELLED, MPI_LAYERWISE
from hbmcomm import costmodel

SEED = 1
MISSING = (
    "scikit-learn is not installed, so there is no learned model beside; add it: "
    ".venv/bin/pip install --constraint constraints.txt --group systems"
)


def predicted(frame: pd.DataFrame, fitted: pd.Series) -> pd.Series:
    """Seconds that gradient boosting predicts for every row from those that are fitted; NaN where
    scikit-learn is not installed.

    One model learns all operations of an MPI and transport: it has more times than a model of one.
    """
    seconds = pd.Series(np.nan, index=frame.index)
    try:
        ensemble: Any = importlib.import_module("sklearn.ensemble")
    except ImportError:
        return seconds
    for _, part in frame.groupby(["mpi", "transport"]):
        features, mine = _features(part), fitted[part.index].to_numpy()
        model = ensemble.GradientBoostingRegressor(random_state=SEED, n_estimators=300, max_depth=4)
        model.fit(features[mine], np.log(part["seconds"].to_numpy()[mine]))
        seconds[part.index] = np.exp(model.predict(features))
    return seconds


def _features(frame: pd.DataFrame) -> NDArray[np.float64]:
    """Logarithms of size, ranks and their product, and a column per operation."""
    size, ranks = (np.log2(frame[name].to_numpy(dtype=float)) for name in ("bytes", "ranks"))
    operations = pd.get_dummies(frame["operation"], dtype=float)
    return np.column_stack([size, ranks, size + ranks, operations])


MODELS = ("model", "learned", "roofline")
"""What predicts times: a cost model; gradient boosting; the bytes over the bandwidth."""
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Evaluation:
    """What is known of a campaign's cost models.

    Attributes:
        machine: as models see it.
        models: by MPI, transport and operation, fitted on the half.
        times: cost_cells.KEYS, `seconds`, `fitted` (whether it is of that half), `low` and `high`
            (NaN: a point is a median of launches), and the seconds that each of MODELS predicts.
        errors: one row per MPI, transport and operation: `cells` held out, then the median and the
            90th percentile of the relative error of each of MODELS there.
        compared: what the column of transports holds, as texts name it.
    """

    machine: costmodel.Machine
    models: dict[Key, costmodel.Model]
    times: pd.DataFrame
    errors: pd.DataFrame
    compared: str = "transport"

    @property
    def held_out(self) -> pd.DataFrame:
        """The rows of `times` that no model was fitted on."""
        return pd.DataFrame(self.times[~self.times["fitted"]])


def evaluate(measured: Measured) -> Evaluation:
    """Fit and judge.

    Raises:
        CannotModel: there are too few sizes and rank counts.
    """
    frame, here = measured.times, measured.machine
    names = ["mpi", "transport", "operation"]
    fitted, models = pd.Series(False, index=frame.index), dict[Key, costmodel.Model]()
    for key, part in frame.groupby(names):
        mpi, transport, operation = map(str, key)
        half = halves(part)
        fitted[part.index] = half
        known = zip(part["ranks"][half], part["bytes"][half], part["seconds"][half], strict=True)
        with contextlib.suppress(costmodel.CostModelError):  # too few: their predictions are NaN
            models[mpi, transport, operation] = costmodel.fit(
                operation,
                [costmodel.Sample(*point) for point in known],
                here,
                shared=transport == DIRECT,
                only=measured.algorithms.get(transport, ""),
            )
    if not models:
        raise CannotModel(
            f"{measured.source} has too few sizes and rank counts: no model fits a half of them; "
            "measure more: ./inv run --experiment model"
        )
    predictions = frame.assign(
        fitted=fitted,
        model=[_predicted(models, here, row) for row in rows(frame)],
        learned=predicted(frame, fitted),
        roofline=frame["bound_s"],
    )
    errors = _errors(predictions[~predictions["fitted"]], names)
    return Evaluation(here, models, predictions, errors, measured.compared)


def halves(frame: pd.DataFrame) -> pd.Series:
    """For each row whether it is of the half that is fitted: sizes and rank counts as on a
    chessboard, so that no neighbour of a cell in either direction is in its half."""
    ranks, sizes = (frame[column].rank(method="dense") for column in ("ranks", "bytes"))
    return (ranks + sizes) % 2 == 0


def relative_error(times: pd.DataFrame, name: str) -> pd.Series:
    """How far the seconds that one of MODELS predicts are from the measured ones, without sign."""
    return (times[name] / times["seconds"] - 1).abs()


def _predicted(models: Mapping[Key, costmodel.Model], here: costmodel.Machine, row: Any) -> float:
    model = models.get((row.mpi, row.transport, row.operation))
    return model.seconds(int(row.ranks), int(row.bytes), here) if model else math.nan


def _errors(held: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    groups = held.assign(**{name: relative_error(held, name) for name in MODELS}).groupby(names)
    columns = {"cells": groups.size()}
    for name in MODELS:
        columns |= {name: groups[name].median(), f"{name}_p90": groups[name].quantile(0.9)}
    summary = pd.DataFrame(columns).reset_index()
    return summary.sort_values(
        names,
        key=lambda column: places(column, CALLS) if column.name == "operation" else column,
        ignore_index=True,
    )


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
