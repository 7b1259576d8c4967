"""The paper's campaign, whole and real at tiny sizes: every figure and its table come out."""

from dataclasses import replace
from pathlib import Path

import docker
import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.model.experiment import Experiment
from experiments.provision.image import Image
from plots.draw import draw
from plots.html.report import report

pytestmark = [pytest.mark.container, pytest.mark.ranks]

FIGURES = ("times", "speedup", "placement", "baselines", "container")


def tiny() -> Experiment:
    """All factors of the catalogue's experiment, two levels of each that costs time.

    Of a size for which one operation fills an interval however fast or loaded the machine is:
    blocks with different numbers of operations in their intervals give no pair of bindings.
    """
    asked = spec.restrict(spec.load("paper"), ranks="2,4", sizes="256KiB", blocks=1)
    short = {"time_cap": 0.002, "min_iterations": 5, "max_iterations": 10}
    return replace(asked, measurement=replace(asked.measurement, **short))


def test_every_figure_and_the_table_of_the_paper(
    engine: docker.DockerClient, image: Image, tmp_path: Path
) -> None:
    assert campaign.run(tiny(), Request(tmp_path / "paper", seed=1), Stages()) == []
    measured = load(tmp_path / "paper")
    assert set(measured.cells["arm"]) == {
        *("host", "host-again", "docker-tuned-one", "threads", "multiprocessing")
    }
    assert set(measured.cells["binding"]) == {"packed", "spread"}
    together = measured.cells.groupby("block")["company"].nunique()
    assert set(together) == {1}, "all arms of a block took turns"
    drawn = draw(tmp_path / "paper", tmp_path / "figures", ("svg",))
    stems = {path.name.split(".")[0] for path in drawn if path.suffix == ".svg"}
    of_ranks = {f"{figure}-{ranks}-ranks" for figure in FIGURES for ranks in (2, 4)}
    assert of_ranks | {"speedup-ranks"} <= stems
    table = (tmp_path / "figures" / "paper.tex").read_text()
    for text in ("Bcast & 2 &", "Allreduce & 4 &", "mpi, host & mpi, Docker", "487 \\%"):
        assert text in table
    page = report(tmp_path / "paper", tmp_path / "page").read_text()
    for text in ("445 % is read as 4.45 times as fast", "487 % (4.87 times)", "Python without MPI"):
        assert text in page
    for name in FIGURES:
        assert (tmp_path / "figures" / f"{name}.csv").stat().st_size > 0
