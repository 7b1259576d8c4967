"""torch.distributed on the host and in a container, in turns: a real campaign at tiny sizes."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.provision.image import Image
from plots.draw import draw
from plots.html.report import report

pytestmark = [pytest.mark.container, pytest.mark.ranks]


@pytest.mark.rare
def test_groups_of_torch_run_on_the_host_and_in_docker(torch_image: Image, tmp_path: Path) -> None:
    asked = spec.restrict(spec.load("torch"), profiles="default", sizes="64KiB", blocks=1)
    groups = replace(
        asked.factors, operations=("allreduce", "alltoall"), transports=("gloo", "torch")
    )
    short = replace(asked.measurement, time_cap=0.01, max_iterations=20)
    tiny = replace(asked, factors=groups, measurement=short)
    out = tmp_path / "torch"
    assert campaign.run(tiny, Request(out, seed=1), Stages()) == []
    cells = load(out).cells
    assert set(cells["arm"]) == {"host", "host-again", "docker-default-one"}
    for _, own in cells.groupby("arm"):
        assert set(zip(own["operation"], own["transport"], strict=True)) == {
            (operation, transport)
            for operation in ("allreduce", "alltoall")
            for transport in ("gloo", "torch")
        }
    assert draw(out, tmp_path / "figures", ("svg",))
    page = report(out, tmp_path / "page").read_text()
    assert "gloo" in page and "not measured" not in page
