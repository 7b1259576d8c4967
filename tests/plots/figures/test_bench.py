"""Figures of a bench: one page of times and one of ratios for each rank count."""

import hashlib
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox

from experiments.analysis.reading import Campaign
from experiments.analysis.statistics import FACTORS
from experiments.bench.question import ask
from experiments.model.contender_names import FORMS
from plots.draw import draw
from plots.figures.bench import contest
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import DARK, PAPER, PARTIES, style

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
    **header: str,
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
    asked = ask(2, tuned=len(settings) > 1).experiment
    cells = pd.DataFrame(rows)
    return Campaign(
        Path(), "bench", asked, {**header}, [], {}, cells, cells.head(0), cells.head(0), []
    )


def drawn(bench: Campaign) -> list[Drawing]:
    with style():
        return [each for each in contest(bench) if isinstance(each, Drawing)]


def marks(drawing: Drawing) -> list[Line2D]:
    """The lines that hold points."""
    lines = [line for axes in drawing.figure.axes for line in axes.get_lines()]
    return [line for line in lines if line.get_marker() not in ("None", "")]


def test_times_and_ratios_with_a_row_per_operation_and_a_column_per_form() -> None:
    times, ratios = drawn(make())
    assert (times.name, ratios.name) == ("bench-times-2-ranks", "bench-ratios-2-ranks")
    for drawing in (times, ratios):
        assert len(drawing.figure.axes) == 2 * 2
        assert {(a.get_xscale(), a.get_yscale()) for a in drawing.figure.axes} == {("log", "log")}


def test_every_party_is_in_the_legend_and_direct_only_among_times() -> None:
    times, ratios = drawn(make())
    parties = ["direct", "Open MPI", "MPICH", "Intel MPI", "pickle"]
    for drawing, shown in ((times, [*parties, "memory bound"]), (ratios, parties[1:])):
        (legend,) = drawing.figure.legends
        assert [text.get_text() for text in legend.get_texts()] == shown


def test_the_best_mpi_is_reported_in_words_for_those_who_cannot_see() -> None:
    _, ratios = drawn(make())
    assert "Bcast, plain, 1 KiB: 1.6" in ratios.description
    assert "against Intel MPI" in ratios.description
    assert "against MPICH" not in ratios.description


def test_another_build_is_a_party_by_its_own_name() -> None:
    times, ratios = drawn(make(speeds=BUILDS, other_build="88fb54c-dirty"))
    parties = ["direct", "direct 88fb54c-dirty", "Open MPI", "MPICH", "Intel MPI", "pickle"]
    for drawing, shown in ((times, [*parties, "memory bound"]), (ratios, parties[1:])):
        (legend,) = drawing.figure.legends
        assert [text.get_text() for text in legend.get_texts()] == shown


def test_the_setting_that_did_best_is_reported_and_how_many_were_tried() -> None:
    for drawing in drawn(make(settings=("default", "sm"))):
        message = " ".join(text.get_text() for text in drawing.figure.texts)
        assert "did best in the cell, of 6 settings" in message.replace("\n", " ")
    assert "against Intel MPI (sm)" in drawing.description
    assert "settings" not in " ".join(text.get_text() for text in drawn(make())[1].figure.texts)


def words(drawing: Drawing) -> list[Bbox]:
    """Boxes of the words around the panels of a page, in pixels."""
    figure = drawing.figure
    figure.set_dpi(300)
    figure.draw_without_rendering()
    bottom = [axes for axes in figure.axes if axes.get_xlabel()]
    labels = [label for axes in bottom for label in axes.get_xticklabels() if label.get_text()]
    heads = [axes.get_title(loc="left") for axes in figure.axes]
    assert sum(map(bool, heads)) == len(bottom)
    return [
        each.get_window_extent()
        for each in (*labels, *(axes.xaxis.label for axes in bottom), *figure.legends)
    ]


@pytest.mark.parametrize("forms", [FORMS[:1], FORMS[:2], FORMS])
def test_no_word_lies_on_another_or_beyond_the_page(forms: tuple[str, ...]) -> None:
    with style():
        for drawing in drawn(make(forms=forms, speeds=BUILDS, other_build="88fb54c-dirty")):
            boxes, page = words(drawing), drawing.figure.bbox
            assert len(boxes) >= 2 * len(forms) + 1
            for box in boxes:
                assert box.x0 >= 0 and box.x1 <= page.x1
            for one, other in combinations(boxes, 2):
                common = Bbox.intersection(one, other)
                assert common is None or min(common.width, common.height) < 3


def test_points_without_an_interval_are_hollow_and_the_figures_say_so() -> None:
    for few, full in zip(drawn(make(blocks=2)), drawn(make()), strict=True):
        assert PAPER in {line.get_markerfacecolor() for line in marks(few)}
        assert any("Hollow" in text.get_text() for text in few.figure.texts)
        assert PAPER not in {line.get_markerfacecolor() for line in marks(full)}
        assert not any("Hollow" in text.get_text() for text in full.figure.texts)


def test_a_barrier_has_no_size_to_be_drawn_over() -> None:
    assert len(drawn(make(operations=("barrier", "bcast")))[0].figure.axes) == 2
    (only,) = contest(make(operations=("barrier",)))
    assert isinstance(only, Skipped)


def test_no_two_parties_share_a_marker_and_each_colour_has_a_dark_one() -> None:
    assert len({look.marker for look in PARTIES.values()}) == len(PARTIES)
    assert {look.colour for look in PARTIES.values()} <= set(DARK)


def test_a_bench_on_an_emulated_machine_says_that_its_times_mean_nothing() -> None:
    bench = make()
    there = replace(bench, header=bench.header | {"machine": {"emulated": "gh200 (tcg)"}})
    for reported, drawings in ((True, drawn(there)), (False, drawn(bench))):
        for drawing in drawings:
            message = " ".join(text.get_text() for text in drawing.figure.texts)
            assert ("Emulated machine gh200 (tcg)" in message) == reported


def test_the_folder_alone_gives_the_same_bytes_each_time(
    bench_folder: Path, tmp_path: Path
) -> None:
    digests = []
    for name in ("one", "two"):
        written = draw(bench_folder, tmp_path / name)
        assert len(written) == 2 * (3 + 1)  # a caption beside each figure
        digests.append([hashlib.sha256(path.read_bytes()).hexdigest() for path in written])
    assert digests[0] == digests[1]
