"""Figure 10: time over the wire's bound, and the sentence beside it."""

from typing import Any

import pandas as pd
import pytest

from experiments.analysis.campaign import Campaign
from plots.contents import answers
from plots.figures.wires import FIGURE as wires
from plots.figures.wires import NAME
from tests.campaigns import make_cells, of_cells
from tests.plots.figures.reading import only

MIB = 2**20
OVER = {"hierarchical": {"packed": 1.1, "spread": 1.2}, "mpi": {"packed": 2.0, "spread": 3.0}}


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    """Campaign over hosts where each cell takes OVER times the bound, whatever its size."""
    cells: Any = make_cells(
        arms=("host", "host-again"),
        ranks=(8,),
        bindings=("packed", "spread"),
        operations=("allreduce",),
        transports=tuple(OVER),
        kinds=("regular",),
        sizes=(65536, MIB),
    )
    over = pd.Series([OVER[row.transport][row.binding] for row in cells.itertuples()])
    cells = cells.assign(wire_s=cells["median_s"] / over.to_numpy(), carried=over * 0 + 1.004)
    return of_cells(cells)


def test_a_panel_for_each_placement_shows_each_transport_over_the_bound(campaign: Campaign) -> None:
    drawing = only(wires, campaign)
    assert drawing.name == "wires-8-ranks"
    for axes, binding in zip(drawing.figure.axes, ("packed", "spread"), strict=True):
        drawn = {round(float(y), 6) for line in axes.lines for y in line.get_ydata()}
        assert drawn == {1.0, *(ratios[binding] for ratios in OVER.values())}
        low, high = axes.get_ylim()
        assert low < 1 and high > 3
    assert "Allreduce, 1 MiB, hierarchical, ranks in blocks: 1.10" in drawing.description


def test_a_sentence_for_each_transport_says_how_near_it_comes(campaign: Campaign) -> None:
    by_question = {answer.question: answer for answer in answers(campaign) if answer.figure == NAME}
    ours = by_question["How near does hierarchical come to what the links allow?"].sentence
    assert ours == (
        "hierarchical takes 1.10 to 1.20 times as long as its bytes on the busiest link from 1 MiB "
        "on; least in Allreduce, 1 MiB, Open MPI, 8 ranks, packed, most in Allreduce, 1 MiB, Open "
        "MPI, 8 ranks, spread. The links carry 1.00 to 1.00 times the least bytes."
    )
    assert len(by_question) == 2
    best = by_question["How near does hierarchical come to what the links allow?"].points
    start = "Allreduce, 64 KiB, 8 ranks, packed: mpi of Open MPI is the fastest, and takes 1.02 ("
    assert best[0].startswith(start)
    assert best[0].endswith(") times as long as hierarchical with that MPI.")
    assert len(best) == 4


def test_between_hosts_the_transport_that_is_ours_is_hierarchical(campaign: Campaign) -> None:
    assert campaign.ours == "hierarchical"
    assert set(campaign.transports["transport"]) == {"mpi"}
