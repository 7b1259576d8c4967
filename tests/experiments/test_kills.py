"""A driver killed at any moment leaves nothing behind, and what it measured can be completed.

Campaigns are killed again and again: HBMCOMM_KILLS times, at moments drawn with HBMCOMM_SEED, of
HBMCOMM_KILL_ENVIRONMENTS, _LAYOUTS and _MPIS. Pytest's output has a line for each kill.
"""

import contextlib
import json
import os
import random
import re
import signal
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.analysis import reading
from experiments.environments.docker import LABEL
from experiments.model.launch import Launch
from experiments.model.lower_bound import COPY
from experiments.processes import folder_lock, ownership, tracking
from experiments.provision.image import Image
from experiments.results import store
from experiments.schedule.blocks import schedule
from tests.awaiting import seconds_until, wait_for
from tests.experiments.running import running
from tests.left import own_files
from tests.tiny_campaign import tiny

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.timeout(3600)]

KILLS = int(os.environ.get("HBMCOMM_KILLS", "2"))
SEED = int(os.environ.get("HBMCOMM_SEED", "1"))
LAUNCHES = {"environments": "host,docker", "layouts": "one,per-rank,isolated", "mpis": "openmpi"}
"""What the campaigns vary, where the variables of the environment say nothing else."""
CLEAN_PATIENCE = 15.0  # seconds until nothing may be left
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
OTHERS = re.compile("libpod_lock$")  # Podman's own in /dev/shm, for good

MEASUREMENT = {"time_cap": 0.2, "min_iterations": 100, "max_iterations": 100_000}


@dataclass
class Campaign:
    """A campaign under way, and what must be gone with its driver."""

    driver: Any
    engine: docker.DockerClient
    out: Path
    toml: Path
    files: Callable[[], set[Path]]
    process: "subprocess.Popen[str] | None" = None
    mark: str = ""

    def go(self) -> None:
        """Start it, or resume it."""
        begun = (self.out / "campaign.json").exists()
        words = ["--resume"] if begun else ["--experiment", str(self.toml), "--seed", "1"]
        self.process = self.driver.start("run", *words, "--out", str(self.out))
        self.mark = tracking.identity(self.process.pid)

    def ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def output(self) -> str:
        assert self.process is not None
        try:
            return "\n".join(self.process.communicate(timeout=300))
        finally:
            self.process.kill()

    def left(self) -> list[str]:
        """Everything of it that is still there."""
        remains = [f"process {process}" for process in tracking.marked(self.mark)]
        remains += [f"process {pid}" for pid in running(str(self.out))]
        mapped = tracking.mapped()
        remains += [str(path) for path in self.files() - mapped if not OTHERS.search(path.name)]
        remains += [str(path) for path in (self.out / "incoming", self.out / folder_lock.NAME)]
        remains = [text for text in remains if not text.startswith("/") or Path(text).exists()]
        with contextlib.suppress(FileNotFoundError):
            header = json.loads((self.out / "campaign.json").read_text())
            label = {"label": f"{LABEL}={header['id']}-{ownership.digest_of(self.out)}"}
            every = self.engine.api.containers(all=True, filters=label)
            remains += [f"container {container['Names']}" for container in every]
            remains += [
                f"network {network.name}" for network in self.engine.networks.list(filters=label)
            ]
            if "podman" in header["experiment"]["launches"]["environments"]:
                remains += in_podman(label["label"])
        return remains

    def clean(self) -> bool:
        return not self.left()


def in_podman(label: str) -> list[str]:
    """Podman's containers and networks with a label; its service may be gone by now."""
    remains = []
    for subcommand in (["ps", "--all"], ["network", "ls"]):
        command = ["podman", *subcommand, "--quiet", "--filter", f"label={label}"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        remains += [f"podman {subcommand[0]} {line}" for line in done.stdout.splitlines()]
    return remains


def moments(campaign: Campaign) -> dict[str, tuple[Callable[[], Any], float]]:
    """What begins each phase of a driver's life, and the seconds within which it is killed then."""
    finished = len(store.finished(campaign.out))
    within = campaign.out / "incoming"
    return {
        "measurement": (lambda: list(within.glob("*/progress")), 1.5),
        "acceptance": (lambda: list(within.glob("*/result.json")), 0.4),
        "creation of containers": (lambda: list(within.glob("*docker*/launch.json")), 1.0),
        "between launches": (lambda: len(store.finished(campaign.out)) > finished, 0.3),
        "before the first launch": (lambda: True, 6.0),
    }


def killed(campaign: Campaign, number: int, draw: random.Random) -> str:
    """Start or resume, and kill at a moment of a phase; which, or "" where it ended before."""
    campaign.go()
    assert campaign.process is not None
    phases = moments(campaign)
    phase = list(phases)[number % len(phases)]
    begun, within = phases[phase]
    wait_for(lambda: begun() or campaign.ended(), phase)
    time.sleep(draw.uniform(0, within))
    if campaign.ended():
        assert campaign.process.returncode == 0, campaign.output()
        return ""
    sent, group = draw.choice(SIGNALS), draw.random() < 0.5
    (os.killpg if group else os.kill)(campaign.process.pid, sent)
    return f"{phase}: {sent.name} to {'its group' if group else 'the driver'}"


def cells(out: Path) -> list[tuple[str, ...]]:
    """What a campaign holds but for its samples, with cells that were skipped."""
    return sorted(
        (
            *(str(launch.launch.block), launch.launch.arm, launch.launch.mpi),
            *(str(getattr(cell, name)) for name in ("operation", "transport", "kind", "bytes")),
        )
        for launch in reading.load(out).launches
        for cell in launch.cells
        if cell.operation != COPY
    )


def planned(out: Path) -> list[tuple[str, ...]]:
    """What it must hold in the end."""
    header = store.read_header(out)
    blocks = schedule(reading.load(out).experiment, header["seed"])
    launches: list[Launch] = [launch for block in blocks for launch in block.launches]
    return sorted(
        (
            *(str(launch.block), launch.arm, launch.mpi),
            *(cell.operation, cell.transport, cell.kind, str(cell.bytes)),
        )
        for launch in launches
        for cell in launch.cells
    )


@pytest.fixture
def files() -> Iterator[Callable[[], set[Path]]]:
    """What drivers of the test, their ranks and their containers have in /dev/shm."""
    with own_files(containers=True) as made:
        yield made


@pytest.mark.rare
def test_whenever_a_driver_is_killed_nothing_is_left_and_its_campaign_can_be_completed(
    driver: Any,
    tmp_path: Path,
    engine: docker.DockerClient,
    image: Image,
    files: Callable[[], set[Path]],
) -> None:
    draw, seconds = random.Random(SEED), []
    toml = tmp_path / "killed.toml"
    launches = {
        name: os.environ.get(f"HBMCOMM_KILL_{name.upper()}", default).split(",")
        for name, default in LAUNCHES.items()
    }
    toml.write_text(
        tiny(factors={"sizes": "1KiB:64KiB:64"}, launches=launches, measurement=MEASUREMENT)
    )
    campaigns = [Campaign(driver, engine, tmp_path / "out0", toml, files)]
    kills = tries = 0
    while kills < KILLS:
        campaign = campaigns[-1]
        what = killed(campaign, tries, draw)
        tries += 1
        if not what:  # complete: the next one
            out = tmp_path / f"out{len(campaigns)}"
            campaigns.append(Campaign(driver, engine, out, toml, files))
            continue
        kills += 1
        seconds.append(seconds_until(campaign.clean, CLEAN_PATIENCE))
        left = campaign.left()
        print(f"kill {kills}, {what}: clean after {seconds[-1]:.1f} s", flush=True)
        assert not left, f"HBMCOMM_SEED={SEED}, kill {kills}, {what}: {left}\n{campaign.output()}"
        campaign.output()
    campaigns[-1].go()
    assert "Traceback" not in campaigns[-1].output()
    for campaign in campaigns:
        assert cells(campaign.out) == planned(campaign.out), f"HBMCOMM_SEED={SEED}"
        assert campaign.left() == []
    median, worst = statistics.median(seconds), max(seconds)
    print(f"seed {SEED}: {kills} kills, clean after {median:.1f} s (median), {worst:.1f} s (worst)")
