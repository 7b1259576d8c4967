"""Ctrl-C in the middle of a campaign loses nothing and leaves nothing; --resume completes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import docker
import pytest

from experiments import results
from experiments.provision.image import Image

ROOT = Path(__file__).parents[2]
SMALL = """
title = "Small"
question = "Does it stop cleanly?"
[factors]
kinds = ["regular"]
sizes = "1KiB:1MiB:16"
[launches]
environments = ["{environment}"]
blocks = 3
aa_pair = false
[measurement]
time_cap = 0.3
min_iterations = 100
max_iterations = 100000
"""


def invoke(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "invoke", *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, f"no {what} within two minutes"
        time.sleep(0.02)


def ranks_alive(folder: Path) -> list[int]:
    """Processes that were started for a launch into this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if "experiments.harness" in words and any(str(folder) in word for word in words):
            found.append(int(path.parent.name))
    return found


def interrupted(experiment: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    """Start a campaign and press Ctrl-C in the middle of its second launch."""
    driver = invoke("run", "--experiment", str(experiment), "--out", str(out))
    try:
        wait_for(lambda: len(results.finished(out)) == 1, "finished launch")
        wait_for(lambda: list(out.glob("incoming/*/progress")), "launch under way")
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
        said = driver.communicate(timeout=60)
    finally:
        driver.kill()
    return subprocess.CompletedProcess([], driver.returncode, *said)


def completed(out: Path) -> None:
    driver = invoke("run", "--resume", "--out", str(out))
    said = driver.communicate(timeout=240)
    assert driver.returncode == 0, said[1]


@pytest.fixture
def experiment(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL.format(environment=request.param))
    return path


@pytest.mark.ranks
@pytest.mark.parametrize("experiment", ["host"], indirect=True)
def test_on_the_host_finished_launches_stay_and_no_rank_is_left(
    experiment: Path, tmp_path: Path
) -> None:
    out, shm = tmp_path / "out", set(Path("/dev/shm").iterdir())
    found = interrupted(experiment, out)
    assert found.returncode == 130
    assert f"--resume --out {out}" in found.stderr
    assert "Traceback" not in found.stderr
    wait_for(lambda: not ranks_alive(out), "end of the ranks")
    assert len(results.finished(out)) == 1
    assert not (out / "incoming").exists()
    first = {path: path.read_bytes() for path in (out / "launches").iterdir()}
    completed(out)
    campaign = results.load(out)
    assert len(campaign.launches) == 3
    assert {path: path.read_bytes() for path in first} == first
    assert set(Path("/dev/shm").iterdir()) <= shm
    assert campaign.cells.groupby("block").size().nunique() == 1


@pytest.mark.ranks
@pytest.mark.container
@pytest.mark.parametrize("experiment", ["docker"], indirect=True)
def test_in_a_container_nothing_of_the_campaign_is_left_in_the_engine(
    experiment: Path, tmp_path: Path, engine: docker.DockerClient, image: Image
) -> None:
    out = tmp_path / "out"
    found = interrupted(experiment, out)
    assert found.returncode == 130
    label = f"hbmcomm.campaign={results.read_header(out)['id']}"
    assert engine.containers.list(all=True, filters={"label": label}) == []
    assert len(results.finished(out)) == 1
    completed(out)
    assert len(results.load(out).launches) == 3
