"""Figure 3: placement of ranks and buffers."""

from collections.abc import Callable

import pytest

from experiments.analysis.findings.campaign import Findings
from plots.figures.placement import placement
from plots.layout.figure_layout import Drawing, Skipped
from plots.layout.style import style

Find = Callable[..., Findings]


def drawn(found: Findings) -> list[Drawing | Skipped]:
    with style():
        return placement(found)


def test_a_column_per_placement_factor(findings: Find) -> None:
    found = findings(
        arms=("host",), bindings=("packed", "spread"), localities=("local", "remote"), blocks=2
    )
    (drawing,) = drawn(found)
    assert isinstance(drawing, Drawing)
    heads = [axes.get_title(loc="left") for axes in drawing.figure.axes[:2]]
    assert heads == ["spread over packed", "remote over local"]


def test_the_axis_is_fair_to_both_sides_of_one(findings: Find) -> None:
    found = findings(arms=("host",), localities=("local", "remote"), blocks=2)
    (drawing,) = drawn(found)
    assert isinstance(drawing, Drawing)
    low, high = drawing.figure.axes[0].get_ylim()
    assert low * high == pytest.approx(1)
    assert high > 1.4


def test_what_could_not_be_measured_is_reported_in_its_column(findings: Find) -> None:
    found = findings(
        arms=("host",), bindings=("packed", "spread"), missing={"remote": "one NUMA node"}
    )
    (drawing,) = drawn(found)
    assert isinstance(drawing, Drawing)
    words = [text.get_text() for axes in drawing.figure.axes[1::2] for text in axes.texts]
    assert [text.replace("\n", " ") for text in words] == [
        "Not measured. remote: one NUMA node"
    ] * 3


def test_a_campaign_without_placement_is_left_out_with_the_reason(findings: Find) -> None:
    (left_out,) = drawn(findings())
    assert isinstance(left_out, Skipped)
    assert "varies neither where ranks run" in left_out.reason
    (left_out,) = drawn(findings(missing={"remote": "one NUMA node"}))
    assert isinstance(left_out, Skipped)
    assert left_out.reason == "remote: one NUMA node"


def test_without_a_host_the_first_arm_there_is_is_shown(findings: Find) -> None:
    found = findings(
        arms=("vm-docker-gh200-tuned-one", "vm-gh200"),
        machine="gh200 (tcg)",
        bindings=("packed", "spread"),
        blocks=2,
    )
    (drawing,) = drawn(found)
    assert isinstance(drawing, Drawing)
    words = " ".join(text.get_text() for text in drawing.figure.texts)
    assert words.startswith("Placement, 2 ranks, vm Open MPI")
    assert "Emulated machine gh200 (tcg)" in words
