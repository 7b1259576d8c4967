"""Figure 3: placement of ranks and buffers."""

import pytest

from plots.figures.placement import FIGURE as placement
from tests.campaigns import find, make_cells, of_cells
from tests.plots.figures.reading import message, only, reason


def test_a_column_per_placement_factor() -> None:
    campaign = find(
        arms=("host",), bindings=("packed", "spread"), localities=("local", "remote"), blocks=2
    )
    drawing = only(placement, campaign)
    heads = [axes.get_title(loc="left") for axes in drawing.figure.axes[:2]]
    assert heads == ["spread over packed", "remote over local"]


def test_the_axis_is_fair_to_both_sides_of_one() -> None:
    campaign = find(arms=("host",), localities=("local", "remote"), blocks=2)
    drawing = only(placement, campaign)
    low, high = drawing.figure.axes[0].get_ylim()
    assert low * high == pytest.approx(1)
    assert high > 1.4


def test_what_could_not_be_measured_is_reported_in_its_column() -> None:
    campaign = find(
        arms=("host",), bindings=("packed", "spread"), missing={"remote": "one NUMA node"}
    )
    drawing = only(placement, campaign)
    words = [text.get_text() for axes in drawing.figure.axes[1::2] for text in axes.texts]
    assert [text.replace("\n", " ") for text in words] == [
        "Not measured. remote: one NUMA node"
    ] * 3


def test_without_a_host_the_first_arm_there_is_is_shown() -> None:
    campaign = find(
        arms=("vm-docker-gh200-tuned-one", "vm-gh200"),
        machine="gh200 (tcg)",
        bindings=("packed", "spread"),
        blocks=2,
    )
    drawing = only(placement, campaign)
    assert message(drawing).startswith("Placement, 2 ranks, vm Open MPI")
    assert "Emulated machine gh200 (tcg)" in message(drawing)


def test_blocks_that_cannot_be_paired_are_the_reason() -> None:
    cells = make_cells(arms=("host",), bindings=("packed", "spread"), blocks=2)
    unlike = of_cells(cells.assign(group=cells["binding"].map({"packed": 1, "spread": 2})))
    assert "spread over packed: no two blocks timed as many operations" in reason(placement, unlike)
