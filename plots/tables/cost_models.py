"""Tables of cost models: parameters and errors, and predicted steps."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
from rich.console import Console

from experiments.analysis import cost_evaluation
from experiments.analysis.cost_evaluation import MODELS, Evaluation, relative_error
from experiments.analysis.selection import rows
from experiments.model.quantities import (
    NOTHING,
    bytes_text,
    percent_text,
    seconds_text,
    significant,
)
from plots.layout.labels import mpi_name, operation_name
from plots.tables.table import Table

WIDTH = 120  # columns of the terminal that the widest table takes
NAMES = ["MPI", "transport", "operation"]


def errors(evaluation: Evaluation) -> Table:
    """A row per MPI, transport and operation: the error of each way to predict."""
    head = [*NAMES, "cells", "model", "learned", "roofline"]
    frame = evaluation.errors
    return Table(
        "model-errors",
        "Errors of cost models",
        "Median relative error on the cells of sizes and rank counts that nothing was fitted on: "
        "of the cost model, of a learned model (gradient boosting), and of the roofline (bytes "
        "over bandwidth).",
        frame,
        head,
        [
            [*_names(row), str(row.cells)]
            + [percent_text(getattr(row, name), 0) for name in MODELS]
            for row in rows(frame)
        ],
        [name not in NAMES for name in head],
        3,
    )


def parameters(evaluation: Evaluation) -> Table:
    """A row per MPI, transport, operation and part of its model."""
    data = pd.DataFrame(
        [
            dict(zip(("mpi", "transport", "operation"), key, strict=True))
            | {"part": part, "switch": model.switch, "algorithm": algorithm}
            | model.absolute(evaluation.machine, long=part == "long")._asdict()
            for key, model in evaluation.models.items()
            for part, algorithm in _algorithms(model)
        ]
    )
    head = [*NAMES, "messages", "algorithm", "call", "alpha", "beta", "beta memory", "gamma"]
    body = [
        [*_names(row), _reach(row), row.algorithm, _seconds(row.call), _seconds(row.alpha)]
        + [_per_byte(value) for value in (row.beta, row.memory, row.gamma)]
        for row in rows(data)
    ]
    return Table(
        "model-parameters",
        "Parameters of cost models",
        "Of two ranks: the call itself, alpha of each message or flag, beta of a byte in caches "
        "and of one in memory, gamma of a byte that is folded.",
        data,
        head,
        body,
        [name not in (*NAMES, "messages", "algorithm") for name in head],
        5,
    )


def _algorithms(model: Any) -> list[tuple[str, str]]:
    short = [("short", model.short.algorithm)] if model.switch else []
    return [*short, ("long", model.long.algorithm)]


def _reach(row: Any) -> str:
    if not row.switch:
        return "all"
    return f"{'up to' if row.part == 'short' else 'above'} {bytes_text(row.switch)}"


def _names(row: Any) -> list[str]:
    return [mpi_name(row.mpi), row.transport, operation_name(row.operation)]


def _seconds(value: float) -> str:
    return seconds_text(value) if value else NOTHING


def _per_byte(value: float) -> str:
    return f"{significant(1e9 * value)} ns" if value else NOTHING


def steps(frame: pd.DataFrame) -> Table:
    """Training steps: measured, predicted and the error.

    Args:
        frame: as cost_evaluation.steps() gives it.
    """
    times = ("computation", "communication", "model", "seconds")
    head = ["network", "way", "ranks", "computation", "communication", "model", "measured", "error"]
    return Table(
        "model-steps",
        "Training steps and what their model predicts",
        "The model of the exchanges is fitted on exchanges alone, the computation is given.",
        frame,
        head,
        [
            [row.network, row.way, str(row.ranks)]
            + [seconds_text(getattr(row, name)) for name in times]
            + [percent_text(row.error, 0)]
            for row in rows(frame)
        ],
        [False, False, *[True] * 6],
        3,
    )


def show(tables: Sequence[Table], evaluation: Evaluation) -> None:
    """Print the tables, and the errors over all cells."""
    console = Console(highlight=False)
    console.width = max(console.width, WIDTH)  # rows are of more use than pages
    for table in tables:
        console.print(table.terminal())
    console.print(sentence(evaluation))
    if evaluation.times["learned"].isna().all():
        console.print(cost_evaluation.MISSING)


def sentence(evaluation: Evaluation) -> str:
    """The errors over all cells that models were not fitted on, of each transport."""
    held = evaluation.held_out.dropna(subset="model")
    transports = [
        (f"{evaluation.compared} {name}:", part)
        for name, part in held.groupby("transport", sort=False)
    ]
    parts = [
        f"{transport} "
        + ", ".join(
            f"{name} {percent_text(relative_error(part, name).median(), 0)}" for name in MODELS
        )
        for transport, part in [("all cells:", held), *transports]
    ]
    return f"Median relative errors on {len(held)} cells held out: {'; '.join(parts)}."
