"""The figure of allreduces between hosts, of models fitted on the stored campaign."""

from pathlib import Path

import pytest

from experiments.analysis import cost_of_links
from experiments.analysis.cost_evaluation import Evaluation, evaluate
from experiments.analysis.reading import load
from experiments.model.workloads import ALGORITHMS
from experiments.results.unarchive import opened
from plots.draw import link_drawings


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    with opened(Path("docs/data/between_hosts.tar.xz")) as folder:
        return evaluate(cost_of_links.of_links(load(folder)))


def test_each_length_has_its_algorithms_measured_and_modelled(evaluation: Evaluation) -> None:
    *fits, drawing = link_drawings(evaluation, 10_000)
    assert {fit.name for fit in fits} == {f"model-mpich-{name}" for name in ALGORITHMS}
    named = len(cost_of_links.ALGORITHMS)
    assert drawing.name == "more-hosts-mpich"
    assert len(drawing.figure.axes) == 3
    for axes in drawing.figure.axes:
        modelled = [line for line in axes.lines if len(line.get_xdata()) > 3]
        marks = [line for line in axes.lines if len(line.get_xdata()) <= 3]
        assert len(modelled) == named
        assert sum(len(line.get_xdata()) for line in marks) == 3 * named
        assert max(modelled[0].get_xdata()) == 10_000
    assert "links of 0.2 Gbit/s" in drawing.figure.words[0]
    assert "ring, 4 MiB, 10000 hosts" in drawing.description
