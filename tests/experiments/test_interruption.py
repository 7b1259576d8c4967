"""Ctrl-C in the middle of a campaign loses nothing and leaves nothing; --resume completes."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.analysis import reading
from experiments.environments.docker import LABEL
from experiments.processes import ownership
from experiments.provision.image import Image
from experiments.results import store
from experiments.schedule.blocks import schedule
from tests.awaiting import wait_for
from tests.experiments.running import running
from tests.left import nothing_left

pytestmark = pytest.mark.ranks


def ranks_alive(folder: Path) -> list[int]:
    """Processes that were started for a launch into this folder."""
    return running("experiments.programs.harness", str(folder))


def interrupted(driver: Any, environment: str, out: Path) -> "subprocess.CompletedProcess[str]":
    """Start a campaign and press Ctrl-C in the middle of its second launch."""
    process = driver.measure(environment, out)
    try:
        wait_for(lambda: len(store.finished(out)) == 1, "finished launch")
        wait_for(lambda: list(out.glob("incoming/*/progress")), "launch under way")
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess([], process.returncode, *output)


@pytest.fixture
def _no_files_left() -> Iterator[None]:
    with nothing_left():
        yield


@pytest.mark.alone
@pytest.mark.usefixtures("_no_files_left")
def test_on_the_host_no_rank_is_left_and_the_campaign_is_complete(
    driver: Any, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    done = interrupted(driver, "host", out)
    assert done.returncode == 130
    assert f"--resume --out {out}" in done.stderr
    assert "Traceback" not in done.stderr
    wait_for(lambda: not ranks_alive(out), "end of the ranks")
    assert len(store.finished(out)) == 1
    assert not (out / "incoming").exists()
    first = {path: path.read_bytes() for path in (out / "launches").iterdir()}
    driver.resume(out)
    campaign = reading.load(out)
    assert len(campaign.launches) == 3
    assert {path: path.read_bytes() for path in first} == first
    factors = ["block", "arm", "operation", "transport", "kind", "bytes"]
    planned = [
        [launch.block, launch.arm, cell.operation, cell.transport, cell.kind, cell.bytes]
        for block in schedule(campaign.experiment, campaign.header["seed"])
        for launch in block.launches
        for cell in launch.cells
    ]
    assert sorted(campaign.cells[factors].to_numpy().tolist()) == sorted(planned)


def test_a_results_folder_that_is_removed_meanwhile_is_named(driver: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = driver.measure("host", out)
    try:
        wait_for(lambda: list(out.glob("incoming/*/progress")), "launch under way")
        shutil.rmtree(out)
        _, output = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 1
    assert f"{out} was removed or emptied while the campaign measured into it" in output
    assert "Traceback" not in output
    wait_for(lambda: not ranks_alive(out), "end of the ranks")


@pytest.mark.container
def test_in_a_container_nothing_of_the_campaign_is_left_in_the_engine(
    driver: Any, tmp_path: Path, engine: docker.DockerClient, image: Image
) -> None:
    out = tmp_path / "out"
    done = interrupted(driver, "docker", out)
    assert done.returncode == 130
    label = f"{LABEL}={store.read_header(out)['id']}-{ownership.digest_of(out)}"
    assert engine.containers.list(all=True, filters={"label": label}) == []
    assert len(store.finished(out)) == 1
    driver.resume(out)
    assert len(reading.load(out).launches) == 3
