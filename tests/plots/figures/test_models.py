"""Figures and tables of cost models, for models made by hand."""

import dataclasses

import pandas as pd
import pytest

from experiments.analysis import whatif
from experiments.analysis.cost_evaluation import Evaluation
from hbmcomm.costmodel import Machine, Memory, Model, Parameters, Part
from plots.draw import model_drawings
from plots.layout.figure_layout import Drawing, Skipped
from plots.tables import cost_models

PART = Part("shared", Parameters(1e-6, 5.0, 0.0, 1.0, 1.2, 0.0))
MODELS = {
    ("openmpi", "direct", name): Model(name, "regular", 0.1, 4096, PART, PART)
    for name in ("bcast", "allreduce")
}
SPEED = Memory((1, 8), (1e10, 4e10))
MACHINE = Machine("test", 8, 1, 32 * 2**20, SPEED, {"regular": SPEED}, 1e-7)


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    rows = []
    for (mpi, transport, operation), model in MODELS.items():
        for place, size in enumerate((1024, 65536, 2**20, 2**24)):
            seconds = model.seconds(4, size, MACHINE)
            rows.append(
                {"mpi": mpi, "transport": transport, "operation": operation, "ranks": 4}
                | {"bytes": size, "seconds": seconds * (1.2 if place == 1 else 0.9)}
                | {"model": seconds, "learned": float("nan"), "roofline": seconds / 2}
                | {"fitted": place % 2 == 0}
            )
    errors = pd.DataFrame(
        [
            {"mpi": "openmpi", "transport": "direct", "operation": name, "cells": 2}
            | {"model": 0.125, "learned": float("nan"), "roofline": 0.5}
            for name in ("bcast", "allreduce")
        ]
    )
    return Evaluation(MACHINE, MODELS, pd.DataFrame(rows), errors)


@pytest.fixture(scope="module")
def drawn(evaluation: Evaluation) -> dict[str, Drawing]:
    every = model_drawings(evaluation, ("knl", "gh200"), ("10gbit", "400gbit"), 100)
    return {drawing.name: drawing for drawing in every if isinstance(drawing, Drawing)}


def test_there_is_a_figure_of_each_fit_and_two_of_each_machine(drawn: dict[str, Drawing]) -> None:
    assert list(drawn) == [
        "model-openmpi-direct",
        "what-if-speedup-knl",
        "what-if-nodes-knl",
        "what-if-speedup-gh200",
        "what-if-nodes-gh200",
    ]


def test_without_models_of_all_that_many_nodes_need_that_figure_alone_is_left_out(
    evaluation: Evaluation,
) -> None:
    few = {key: model for key, model in MODELS.items() if key[2] == "allreduce"}
    *drawn, last = model_drawings(
        dataclasses.replace(evaluation, models=few), ("knl",), ("10gbit",), 9
    )
    assert [drawing.name for drawing in drawn] == ["model-openmpi-direct", "what-if-speedup-knl"]
    assert isinstance(last, Skipped) and last.name == "what-if-nodes-knl"
    assert "allreduce on many nodes needs models of reduce, bcast" in last.reason


def test_a_fit_has_a_panel_per_operation_with_both_halves(drawn: dict[str, Drawing]) -> None:
    drawing = drawn["model-openmpi-direct"]
    assert len(drawing.figure.axes) == 2
    line, filled, hollow = drawing.figure.axes[0].lines
    assert (len(line.get_xdata()), len(filled.get_xdata()), len(hollow.get_xdata())) == (4, 2, 2)
    assert "Bcast: the median error of 2 cells" in drawing.description


def test_the_published_figures_are_beside_the_paper_s_machine_alone(
    drawn: dict[str, Drawing],
) -> None:
    labels = {
        name: [text.get_text() for text in drawn[f"what-if-speedup-{name}"].figure.legends[0].texts]
        for name in ("knl", "gh200")
    }
    assert "published" in labels["knl"] and "published" not in labels["gh200"]
    assert len(drawn["what-if-speedup-knl"].figure.axes) == len(whatif.PLACEMENTS)
    assert len(drawn["what-if-speedup-gh200"].figure.axes) == 1  # has one node


def test_scaling_has_a_line_and_a_band_for_each_network_and_memory(
    drawn: dict[str, Drawing],
) -> None:
    axes = drawn["what-if-nodes-knl"].figure.axes[0]
    assert len(axes.lines) == len(axes.collections) == 4
    assert "nothing was measured there" in drawn["what-if-nodes-knl"].printed_caption


def test_tables_have_errors_and_both_parts_of_a_model(evaluation: Evaluation) -> None:
    errors, parameters = cost_models.errors(evaluation), cost_models.parameters(evaluation)
    assert errors.rows[0] == ["Open MPI", "direct", "Bcast", "2", "12 %", "–", "50 %"]
    assert [row[3] for row in parameters.rows[:2]] == ["up to 4 KiB", "above 4 KiB"]
    assert parameters.rows[0][5:7] == ["1.00 µs", "500 ns"]


def test_steps_name_their_error() -> None:
    row = {"network": "resnet50", "way": "layerwise", "ranks": 2, "computation": 0.06}
    row |= {"communication": 0.02, "model": 0.061, "seconds": 0.066, "error": 0.0758}
    assert cost_models.steps(pd.DataFrame([row])).rows[0][-3:] == ["61.0 ms", "66.0 ms", "8 %"]
