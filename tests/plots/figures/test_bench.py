"""A bench: pages of times and of ratios, sentences and a table."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from experiments.analysis.campaign import Campaign
from experiments.model.contender_names import FORMS
from plots.figures import bench
from plots.layout.figure_layout import Drawing
from plots.layout.style import PAPER, style
from tests.benches import ask, medians, stored
from tests.plots.figures.reading import drawn, legend, marks, message, reason
from tests.plots.legible import check_words

SPEEDS = {"direct": 1.0, "direct-again": 1.01, "mpi": 1.6, "pickle": 15.0}
BUILDS = SPEEDS | {"other-build": 1.3, "other-build-again": 1.3}
SLOWER = {"openmpi": 1.2, "mpich": 1.5, "impi": 1.0}


def make(
    blocks: int = 6,
    operations: tuple[str, ...] = ("bcast", "allreduce"),
    forms: tuple[str, ...] = ("plain", "persistent"),
    speeds: dict[str, float] = SPEEDS,
    settings: tuple[str, ...] = ("default",),
    **header: Any,
) -> Campaign:
    """A bench by a plain model: latency plus bytes over bandwidth, with seeded noise."""
    rng = np.random.default_rng(5)
    cells = [
        medians(
            {
                (mpi, contender): (1e-6 + size / 1e10)
                * factor
                * (slow / (1.2 if setting == "sm" else 1) if contender == "mpi" else 1)
                * rng.lognormal(0, 0.02, blocks)
                for mpi, slow in SLOWER.items()
                for contender, factor in speeds.items()
                if form == "plain" or contender != "pickle"
            },
            operation=operation,
            size=size,
            form=form,
            setting=setting,
        ).assign(bound_s=size / 2e10 or np.nan)
        for operation in operations
        for size in ((0,) if operation == "barrier" else (1024, 65536, 4194304))
        for form in forms
        for setting in settings
    ]
    return stored(pd.concat(cells), ask(2, tuned=len(settings) > 1), **header)


@pytest.fixture(scope="module")
def pages() -> list[Drawing]:
    """The figure of times and the one of ratios; tests only read them."""
    return drawn(bench.draw, make())


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
    times, ratios = drawn(bench.draw, make(speeds=speeds, **header))
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
    for drawing in drawn(bench.draw, make(settings=("default", "sm"))):
        assert "did best in the cell, of 6 settings" in message(drawing)
    assert "against Intel MPI (sm)" in drawing.description
    assert "settings" not in message(pages[1])


@pytest.mark.parametrize("forms", [FORMS[:1], FORMS[:2], FORMS[:3], FORMS])
def test_no_word_lies_on_another_or_beyond_the_page(forms: tuple[str, ...]) -> None:
    with style():
        for drawing in drawn(
            bench.draw, make(forms=forms, speeds=BUILDS, other_build="88fb54c-dirty")
        ):
            check_words(drawing.figure)
            heads = [axes.get_title(loc="left") for axes in drawing.figure.axes]
            assert sum(map(bool, heads)) == len(forms)


def test_points_without_an_interval_are_hollow_and_the_figures_say_so(pages: list[Drawing]) -> None:
    for few, full in zip(drawn(bench.draw, make(blocks=2)), pages, strict=True):
        for drawing, hollow in ((few, True), (full, False)):
            faces = {line.get_markerfacecolor() for line in marks(drawing)}
            assert (PAPER in faces) == ("Hollow" in message(drawing)) == hollow


def test_a_barrier_has_no_size_to_be_drawn_over() -> None:
    both, _ = drawn(bench.draw, make(operations=("barrier", "bcast")))
    assert len(both.figure.axes) == 2
    assert reason(bench.draw, make(operations=("barrier",)))


def test_a_bench_on_an_emulated_machine_says_that_its_times_mean_nothing(
    pages: list[Drawing],
) -> None:
    there = make(machine={"emulated": "gh200 (tcg)"})
    for reported, drawings in ((True, drawn(bench.draw, there)), (False, pages)):
        for drawing in drawings:
            assert ("Emulated machine gh200 (tcg)" in message(drawing)) == reported


def rivals(
    ratios: dict[tuple[str, int], float], blocks: int = 6, again: float = 1.01, twins: int = 8
) -> Campaign:
    """A bench of {(MPI, bytes): time over direct's} in plain Bcast; direct again in more cells of
    two bands of sizes.
    """
    seconds = np.linspace(1, 1 + (blocks - 1) / 100, blocks)
    sizes = [first + 4 * n for first in (16, 2**16) for n in range(twins)]
    cells = [(*cell, "mpi", ratio) for cell, ratio in ratios.items()]
    cells += [(mpi, size, "direct-again", again) for mpi in ("mpich", "impi") for size in sizes]
    frames = [
        medians(
            {(mpi, "direct"): seconds, (mpi, other): seconds * ratio}, operation="bcast", size=size
        )
        for mpi, size, other, ratio in cells
    ]
    return stored(pd.concat(frames, ignore_index=True), ask(2))


RATIOS = {("mpich", 8): 3.0, ("impi", 8): 1.5, ("mpich", 2**20): 0.8, ("impi", 2**20): 4.0}


def test_the_answer_spans_the_best_mpis_of_all_sizes_and_owns_to_losses() -> None:
    (answer,) = bench.answers(rivals(RATIOS))
    assert answer.question.endswith("Bcast, plain calls, 2 ranks")
    assert answer.sentence == (
        "It takes 0.80 times as long (mpich, 1 MiB) to 1.50 times as long (impi, 8 B). "
        "It is faster than direct beyond the noise floor in 1 cell. "
        "Seen in 6 paired blocks; a claim needs 10."
    )
    assert answer.figure == "bench-ratios-2-ranks"
    (few,) = bench.answers(rivals(RATIOS, blocks=2))
    assert few.sentence.endswith("There is no interval below 6 blocks.")


def test_one_cell_is_no_range_and_a_barrier_has_no_figure() -> None:
    one = rivals({("mpich", 8): 1.5})
    (answer,) = bench.answers(replace(one, cells=one.cells.assign(operation="barrier")))
    assert answer.sentence.startswith("It takes 1.50 times as long (mpich, 8 B). ")
    assert not answer.figure


def test_nothing_is_claimed_within_the_noise_of_direct_itself() -> None:
    (loud,) = bench.answers(rivals(RATIOS, blocks=10, again=1.3))
    assert "faster than direct" not in loud.sentence
    assert "claim" not in bench.answers(rivals(RATIOS, blocks=10))[0].sentence
    assert bench.marks(rivals(RATIOS, again=1.3)) == ["Direct against itself strays 30.0 % at most"]


def test_without_enough_cells_of_direct_again_nothing_differs() -> None:
    unknown = rivals(RATIOS, twins=3)
    (answer,) = bench.answers(unknown)
    assert "faster than direct" not in answer.sentence
    assert answer.sentence.endswith(
        "Direct was measured twice in fewer than 8 cells of a size like 8 B, 1 MiB, so the noise "
        "floor there is unknown and nothing differs: measure more sizes or operations."
    )
    assert bench.marks(unknown) == ["The noise floor is unknown"]


def test_the_table_has_a_row_per_cell_and_a_column_per_peer() -> None:
    table = bench.table(rivals(RATIOS))
    assert table.head[4:] == ["mpich", "impi"]
    assert table.rows == [
        ["Bcast", "plain", "2", "8 B", "3.00", "1.50"],
        ["Bcast", "plain", "2", "1 MiB", "0.80", "4.00"],
    ]
