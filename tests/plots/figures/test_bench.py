"""Figures of a bench: one page of times and one of ratios for each rank count."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.reading import Campaign
from experiments.analysis.statistics import FACTORS
from experiments.bench.question import ask
from experiments.model.contender_names import FORMS
from plots.figures.bench import contest
from plots.layout.figure_layout import Drawing
from plots.layout.style import PAPER, style
from tests.plots.figures.reading import drawn, legend, marks, message, reason
from tests.plots.legible import check_words

SPEEDS = {"direct": 1.0, "direct-again": 1.01, "mpi": 1.6, "pickle": 15.0}
BUILDS = SPEEDS | {"other-build": 1.3, "other-build-again": 1.3}
SLOWER = {"openmpi": 1.2, "mpich": 1.5, "impi": 1.0}


def make(
    blocks: int = 6,
    operations: tuple[str, ...] = ("bcast", "allreduce"),
    ranks: int = 2,
    forms: tuple[str, ...] = ("plain", "persistent"),
    speeds: dict[str, float] = SPEEDS,
    settings: tuple[str, ...] = ("default",),
    **header: Any,
) -> Campaign:
    """A bench by a plain model: latency plus bytes over bandwidth, with seeded noise."""
    rng = np.random.default_rng(5)
    rows = [
        dict.fromkeys(FACTORS, "")
        | {"block": block, "arm": f"{mpi}-{setting}", "mpi": mpi, "ranks": ranks}
        | {"operation": operation, "bytes": size, "emulated": False, "contest": 1, "company": ""}
        | {"transport": contender, "form": form, "n": 100, "group": 1, "turns": ()}
        | {"median_s": (1e-6 + size / 1e10) * factor * slower * rng.lognormal(0, 0.02)}
        | {"bound_s": np.nan if operation == "barrier" else size / 2e10, "setting": setting}
        for block in range(blocks)
        for mpi, slow in SLOWER.items()
        for operation in operations
        for size in ((0,) if operation == "barrier" else (1024, 65536, 4194304))
        for form in forms
        for setting in settings
        for contender, factor in speeds.items()
        if form == "plain" or contender != "pickle"
        for slower in (slow / (1.2 if setting == "sm" else 1.0) if contender == "mpi" else 1.0,)
    ]
    asked = ask(2, tuned=len(settings) > 1)
    cells = pd.DataFrame(rows)
    return Campaign(Path(), "bench", asked, header, [], cells, cells.head(0), cells.head(0), [])


@pytest.fixture(scope="module")
def pages() -> list[Drawing]:
    """The figure of times and the one of ratios; tests only read them."""
    return drawn(contest, make())


def test_times_and_ratios_with_a_row_per_operation_and_a_column_per_form(
    pages: list[Drawing],
) -> None:
    times, ratios = pages
    assert (times.name, ratios.name) == ("bench-times-2-ranks", "bench-ratios-2-ranks")
    for drawing in (times, ratios):
        assert len(drawing.figure.axes) == 2 * 2
        assert {(a.get_xscale(), a.get_yscale()) for a in drawing.figure.axes} == {("log", "log")}


@pytest.mark.parametrize(
    ("speeds", "header", "builds"),
    [
        (SPEEDS, {}, ["direct"]),
        (BUILDS, {"other_build": "88fb54c-dirty"}, ["direct", "direct 88fb54c-dirty"]),
    ],
)
def test_every_party_and_build_is_in_the_legend_and_direct_only_among_times(
    speeds: dict[str, float], header: dict[str, str], builds: list[str]
) -> None:
    times, ratios = drawn(contest, make(speeds=speeds, **header))
    parties = [*builds, "Open MPI", "MPICH", "Intel MPI", "pickle"]
    assert legend(times) == [*parties, "memory bound"]
    assert legend(ratios) == parties[1:]


def test_the_best_mpi_is_reported_in_words_for_those_who_cannot_see(pages: list[Drawing]) -> None:
    _, ratios = pages
    assert "Bcast, plain, 1 KiB: 1.6" in ratios.description
    assert "against Intel MPI" in ratios.description
    assert "against MPICH" not in ratios.description


def test_the_setting_that_did_best_is_reported_and_how_many_were_tried(
    pages: list[Drawing],
) -> None:
    for drawing in drawn(contest, make(settings=("default", "sm"))):
        assert "did best in the cell, of 6 settings" in message(drawing)
    assert "against Intel MPI (sm)" in drawing.description
    assert "settings" not in message(pages[1])


@pytest.mark.parametrize("forms", [FORMS[:1], FORMS[:2], FORMS[:3], FORMS])
def test_no_word_lies_on_another_or_beyond_the_page(forms: tuple[str, ...]) -> None:
    with style():
        for drawing in drawn(
            contest, make(forms=forms, speeds=BUILDS, other_build="88fb54c-dirty")
        ):
            check_words(drawing.figure)
            heads = [axes.get_title(loc="left") for axes in drawing.figure.axes]
            assert sum(map(bool, heads)) == len(forms)


def test_points_without_an_interval_are_hollow_and_the_figures_say_so(pages: list[Drawing]) -> None:
    for few, full in zip(drawn(contest, make(blocks=2)), pages, strict=True):
        for drawing, hollow in ((few, True), (full, False)):
            faces = {line.get_markerfacecolor() for line in marks(drawing)}
            assert (PAPER in faces) == ("Hollow" in message(drawing)) == hollow


def test_a_barrier_has_no_size_to_be_drawn_over() -> None:
    both, _ = drawn(contest, make(operations=("barrier", "bcast")))
    assert len(both.figure.axes) == 2
    assert reason(contest, make(operations=("barrier",)))


def test_a_bench_on_an_emulated_machine_says_that_its_times_mean_nothing(
    pages: list[Drawing],
) -> None:
    there = make(machine={"emulated": "gh200 (tcg)"})
    for reported, drawings in ((True, drawn(contest, there)), (False, pages)):
        for drawing in drawings:
            assert ("Emulated machine gh200 (tcg)" in message(drawing)) == reported
