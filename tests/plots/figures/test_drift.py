"""The drift's figure: a mark for every launch, a line for every block."""

from dataclasses import replace

import pandas as pd

from experiments.analysis.findings import Findings
from plots.figures.drift import drift
from tests.campaigns import find
from tests.plots.figures.reading import only, reason


def paced(found: Findings, blocks: int = 3) -> Findings:
    rows = [
        {"began_s": 10.0 * block, "arm": arm, "mpi": "openmpi", "block": block, "pace": pace}
        for block in range(blocks)
        for arm, pace in (("host", 1.0 + 0.1 * block), ("docker-tuned-one", 1.01 + 0.1 * block))
    ]
    return replace(found, paces=pd.DataFrame(rows))


def test_every_launch_has_a_mark_and_the_words_say_how_far_a_block_agrees() -> None:
    drawing = only(drift, paced(find()))
    (axes,) = drawing.figure.axes
    lines = [line for line in axes.lines if line.get_marker() == "o"]
    assert [len(line.get_xdata()) for line in lines] == [2, 2, 2]  # type: ignore[arg-type]
    assert "1.00 to 1.21 times as long as usual" in drawing.caption
    assert "differed by 0.9 % in the median block" in drawing.caption


def test_the_words_say_what_neighbours_that_sleep_cost() -> None:
    company = pd.DataFrame({"ratio": [0.99, 1.0, 1.01, 1.02, 1.03]})
    drawing = only(drift, replace(paced(find()), company=company))
    assert "the host took 1.01 times as long as alone: the median of 5 cells" in drawing.caption
    assert "80 % of them from 0.99 to 1.03" in drawing.caption


def test_one_block_shows_no_drift() -> None:
    assert reason(drift, paced(find(), blocks=1))
    assert reason(drift, replace(paced(find()), machine="Emulated."))
