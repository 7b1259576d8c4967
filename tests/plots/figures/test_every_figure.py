"""What holds for several figures: why they are left out, and marks without an interval."""

from collections.abc import Callable
from typing import Any

import pytest

from plots.figures.baselines import FIGURE as baselines
from plots.figures.chain import FIGURE as chain
from plots.figures.container import FIGURE as container
from plots.figures.placement import FIGURE as placement
from plots.figures.placement_map import FIGURE as placement_map
from plots.figures.speedup import FIGURE as speedup
from plots.figures.systems import FIGURE as systems
from plots.figures.times import FIGURE as times
from plots.figures.wires import FIGURE as wires
from plots.figures.workloads import FIGURE as workloads
from plots.layout.style import PAPER
from tests.campaigns import find
from tests.plots.figures.reading import marks, message, only, reason

Figure = Callable[..., Any]
ONE_KIND = {"kinds": ("regular",)}
INSIDE = {"arms": ("docker-tuned-one",)}


@pytest.mark.parametrize(
    ("figure", "levels", "words"),
    [
        (chain, {}, "it needs the arm userland"),
        (container, {"arms": ("host", "host-again")}, "this campaign has no container arm"),
        (container, INSIDE, "no launch on the host beside those in containers"),
        (container, INSIDE | {"machine": "gh200 (tcg)"}, "is not to be had on an emulated machine"),
        (placement_map, {}, "no launch recorded the machine's nodes and where its pages are"),
        (placement, {}, "varies neither where ranks run"),
        (placement, {"missing": {"remote": "one NUMA node"}}, "remote: one NUMA node"),
        (speedup, ONE_KIND, "a kind of memory to compare with regular"),
        (speedup, ONE_KIND | {"missing": {"hbw": "no HBM here"}}, "hbw: no HBM here"),
    ],
)
def test_what_a_campaign_cannot_fill_is_left_out_with_the_reason(
    figure: Figure, levels: dict[str, Any], words: str
) -> None:
    assert words in reason(figure, find(blocks=2, **levels))


@pytest.mark.parametrize("figure", [baselines, systems, wires, workloads])
def test_what_a_campaign_of_collectives_does_not_ask_is_not_missed(figure: Figure) -> None:
    assert figure(find()) == []


@pytest.mark.parametrize(
    ("figure", "replicates"), [(times, "launches"), (speedup, "blocks"), (container, "blocks")]
)
def test_a_mark_without_an_interval_is_hollow_and_the_figure_says_so(
    figure: Figure, replicates: str
) -> None:
    few, full = only(figure, find(blocks=1)), only(figure, find())
    assert {line.get_markerfacecolor() for line in marks(few)} == {PAPER}
    assert f"Hollow mark: too few {replicates}" in message(few)
    assert PAPER not in {line.get_markerfacecolor() for line in marks(full)}
    assert "Hollow" not in message(full)
