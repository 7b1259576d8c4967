"""What bounds a cell is read as its bound and not as a cell; what links carry goes with it."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from experiments.analysis.reading import load
from experiments.catalogue import spec
from experiments.model.contender_names import NO_TRANSPORT
from experiments.model.environment import EnvironmentId
from experiments.schedule.blocks import schedule
from tests.stored_launches import begin, finish

SECONDS = {NO_TRANSPORT: 2.0, "gloo": 8.0, "torch": 2.5}


def test_the_computation_alone_bounds_the_steps_of_its_size(tmp_path: Path) -> None:
    asked = spec.restrict(spec.load("torch_decode"), environments="host", blocks=1)
    launch = schedule(asked, 1)[0].launches[0]
    cells, samples = [], {}
    for number, cell in enumerate(launch.plan):
        key = f"c{number}"
        record = {"samples": key, "warmup": 1, "group": 1, "turn": 2, "emulated": False}
        cells.append(asdict(cell) | record)
        samples[key] = np.full((5, 2), cell.bytes * SECONDS[cell.transport])
    begin(tmp_path, asked)
    finish(tmp_path, launch, cells, samples)
    campaign = load(tmp_path)
    assert campaign.controls.empty
    assert set(campaign.cells["transport"]) == {"gloo", "torch"}
    assert len(campaign.cells) == 2 * len(asked.factors.sizes)
    ratios = campaign.cells["bound_s"] / campaign.cells["bytes"]
    assert ratios.to_list() == pytest.approx([SECONDS[NO_TRANSPORT]] * len(ratios))


@pytest.mark.parametrize(
    ("environment", "hosts", "wire_s"),
    [
        ("hosts:2x100mbit", 2, 4096 * 8 / 1e8),
        ("slurm", 2, np.nan),  # nobody says what its links can do
        ("host", 0, np.nan),
    ],
)
def test_a_cell_has_the_bound_of_its_links_and_what_they_carried(
    tmp_path: Path, environment: str, hosts: int, wire_s: float
) -> None:
    asked = spec.restrict(spec.load("cluster"), environments="hosts:2", sizes="4KiB", blocks=1)
    launch = replace(
        schedule(asked, 1)[0].launches[0], environment=EnvironmentId.parse(environment)
    )
    counters = {key: {"sent": 0, "received": 0} for key in ("before", "after")}
    by_host = [{"name": f"n{host}", "ranks": [host, host + 2]} | counters for host in range(hosts)]
    record = {"samples": "c0", "warmup": 0, "group": 1, "turn": 0, "emulated": False}
    links = {"operations": 10, "sent": [40960, 40960], "received": [40960, 61440]}
    cells = [asdict(cell) | record | ({"links": links} if hosts else {}) for cell in launch.plan]
    environment = {"versions": {}} | ({"hosts": by_host} if hosts else {})
    begin(tmp_path, asked)
    finish(tmp_path, launch, cells, {"c0": np.full((6, 8), 1e-3)}, environment=environment)
    read = load(tmp_path).cells
    summed = read[read["operation"] == "allreduce"]
    assert len(summed) == 2
    assert summed["wire_s"].to_list() == pytest.approx([wire_s] * 2, nan_ok=True)
    carried = 1.5 if hosts else np.nan
    assert summed["carried"].to_list() == pytest.approx([carried] * 2, nan_ok=True)
