"""A campaign in an emulated machine: every cell is measured, every page where it belongs."""

from collections.abc import Iterator
from typing import Any

import pytest

from experiments.analysis import reading
from experiments.analysis.campaign import Campaign
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import campaign
from experiments.driver.campaign_file import Request
from experiments.emulation import description, qemu_command
from experiments.emulation.qemu_command import Disk
from experiments.results.result import Pool
from tests.tiny_campaign import tiny

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(900)]

MACHINE = "knl-snc4-flat"
ARMS = {f"vm-{MACHINE}", f"vm-docker-{MACHINE}-tuned-one"}
CHANGES: dict[str, dict[str, Any]] = {
    "factors": {
        "transports": ["direct"],
        "kinds": ["regular", "hbw"],
        "localities": ["local", "remote"],
        "sizes": "64KiB",
    },
    "launches": {
        "environments": ["vm:knl-snc4-flat", "vm-docker:knl-snc4-flat"],
        "ranks": [4],
        "bindings": ["spread"],
    },
    "measurement": {"min_iterations": 2, "max_iterations": 4},
}


@pytest.fixture(scope="module")
def measured(disk: Disk, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One boot, one launch in each arm."""
    folder = tmp_path_factory.mktemp("measured")
    experiment, out = folder / "placed.toml", folder / "out"
    experiment.write_text(tiny(**CHANGES))
    assert campaign.run(spec.load(str(experiment)), Request(out, seed=1), Stages()) == []
    return reading.load(out)


def pools(measured: Campaign) -> Iterator[tuple[int, Pool]]:
    """Every rank's CPU and each of its pools, in all launches."""
    for launch in measured.launches:
        for rank in launch.ranks:
            for pool in rank.pools:
                yield rank.cpu, pool


def test_each_arm_measures_every_cell(measured: Campaign) -> None:
    assert set(measured.cells["arm"]) == ARMS
    counts = measured.cells.groupby("arm").size()
    assert set(counts) == {2 * 2}
    assert not measured.cells["emulated"].any()


def test_every_page_of_every_rank_is_on_the_node_that_was_asked_for(measured: Campaign) -> None:
    knl = description.load(MACHINE)
    quadrant_of = {cpu: node.id for node in knl.cpu_nodes for cpu in node.cpus}
    seen = set()
    for cpu, pool in pools(measured):
        quadrant, nodes = quadrant_of[cpu], {int(node) for node in pool.placement}
        own = {node.id for node in knl.local_hbm(quadrant)}
        assert sum(pool.placement.values()) == 2 * 64 * 2**10  # send and receive buffer
        if pool.locality == "local":
            assert nodes == set(pool.nodes) == (own if pool.kind == "hbw" else {quadrant})
        else:
            every = knl.hbm if pool.kind == "hbw" else knl.cpu_nodes
            assert nodes == set(pool.nodes)
            assert nodes < {node.id for node in every} - own - {quadrant}
        seen.add((quadrant, pool.kind, pool.locality))
    assert len(seen) == 4 * 2 * 2


def test_what_was_emulated_stands_beside_the_results(measured: Campaign) -> None:
    shown = measured.header["emulated"]
    assert shown["machine"] == shown["description"]["name"] == MACHINE
    assert shown["accelerator"] in qemu_command.ACCELERATORS
    assert shown["qemu"]
    assert shown["disk"]
    assert {launch.machine for launch in measured.launches} == {
        f"{MACHINE} ({shown['accelerator']})"
    }
    assert any(MACHINE in warning for warning in measured.warnings)
