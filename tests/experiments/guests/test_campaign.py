"""A campaign in an emulated machine, as a user starts it: measured, stopped, killed, completed."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis import reading
from experiments.analysis.reading import Campaign
from experiments.catalogue import spec
from experiments.console.stages import Stages
from experiments.emulation import description, qemu_command
from experiments.execution import campaign
from experiments.execution.campaign_file import Request
from experiments.guests.disk import Disk
from experiments.processes import folder_lock, tracking
from experiments.results import store
from tests.awaiting import wait_for
from tests.tiny_campaign import tiny

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.timeout(900)]

MACHINE = "knl-snc4-flat"
ARMS = {f"vm-{MACHINE}", f"vm-docker-{MACHINE}-tuned-one"}
BOOT_PATIENCE = 400.0  # seconds until a launch begins; the disk may have to be made first
GONE_PATIENCE = 15.0  # seconds until nothing of a killed driver may be left
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
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("asked") / "placed.toml"
    path.write_text(tiny(**CHANGES))
    return path


@pytest.fixture(scope="module")
def measured(experiment: Path, disk: Disk, tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """One boot, one launch in each arm."""
    out = tmp_path_factory.mktemp("measured") / "out"
    assert campaign.run(spec.load(str(experiment)), Request(out, seed=1), Stages()) == []
    return reading.load(out)


def pools(measured: Campaign) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every rank's CPU and each of its pools, in all launches."""
    for launch in measured.launches:
        for rank in launch["ranks"]:
            for pool in rank["pools"]:
                yield rank["cpu"], pool


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
        quadrant, nodes = quadrant_of[cpu], {int(node) for node in pool["placement"]}
        own = {node.id for node in knl.local_hbm(quadrant)}
        assert sum(pool["placement"].values()) == 2 * 64 * 2**10  # send and receive buffer
        if pool["locality"] == "local":
            assert nodes == set(pool["nodes"]) == (own if pool["kind"] == "hbw" else {quadrant})
        else:
            every = knl.hbm_nodes if pool["kind"] == "hbw" else knl.cpu_nodes
            assert nodes == set(pool["nodes"])
            assert nodes < {node.id for node in every} - own - {quadrant}
        seen.add((quadrant, pool["kind"], pool["locality"]))
    assert len(seen) == 4 * 2 * 2


def test_what_was_emulated_stands_beside_the_results(measured: Campaign) -> None:
    shown = measured.header["emulated"]
    assert shown["machine"] == shown["description"]["name"] == MACHINE
    assert shown["accelerator"] in qemu_command.ACCELERATORS
    assert shown["qemu"]
    assert shown["disk"]
    assert {launch["environment"]["machine"]["emulated"] for launch in measured.launches} == {
        f"{MACHINE} ({shown['accelerator']})"
    }
    assert any(MACHINE in warning for warning in measured.warnings)


def emulators(mark: str) -> set[str]:
    """QEMU's processes among those that carry a driver's mark."""
    return {who for who in tracking.marked(mark) if _is_emulator(int(who.partition(".")[0]))}


def _is_emulator(pid: int) -> bool:
    try:
        program = Path(f"/proc/{pid}/cmdline").read_text().partition("\0")[0]
    except OSError:
        return False
    return Path(program).name == qemu_command.PROGRAM


@contextlib.contextmanager
def started(driver: Any, out: Path, *words: str) -> "Iterator[tuple[subprocess.Popen[str], str]]":
    """The driver of a campaign, and its mark; killed at the end, where it still runs."""
    process = driver.start("run", *words, "--out", str(out))
    try:
        yield process, tracking.identity(process.pid)
    finally:
        process.kill()
        process.wait()


def in_its_first_launch(out: Path) -> Callable[[], object]:
    return lambda: list(out.glob("incoming/*/launch.json"))


def test_a_guest_that_dies_is_reported_and_ctrl_c_leaves_nothing(
    driver: Any, experiment: Path, tmp_path: Path, disk: Disk
) -> None:
    out, shm = tmp_path / "out", set(tracking.SHM.iterdir())
    words = ("--experiment", str(experiment), "--env", "vm:plain")
    with started(driver, out, *words) as (process, mark):
        wait_for(in_its_first_launch(out), "launch under way", BOOT_PATIENCE)
        (emulator,) = emulators(mark)
        os.kill(int(emulator.partition(".")[0]), signal.SIGKILL)
        output = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert (
        "the guest of plain ended while 0000-vm-plain ran in it: QEMU ended with code -9" in output
    )
    assert "--resume boots it again" in output
    assert "Traceback" not in output
    assert store.failed(out) == {}

    with started(driver, out, "--resume") as (process, mark):
        wait_for(in_its_first_launch(out), "launch under way", BOOT_PATIENCE)
        assert emulators(mark)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        output = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert f"--resume --out {out}" in output
    assert not tracking.marked(mark)
    assert not set(tracking.SHM.iterdir()) - shm - tracking.mapped()
    assert not (out / "incoming").exists()


def test_no_emulator_outlives_a_killed_driver(
    driver: Any, experiment: Path, tmp_path: Path, disk: Disk
) -> None:
    out, shm = tmp_path / "out", set(tracking.SHM.iterdir())
    words = ("--experiment", str(experiment), "--env", "vm:plain")
    with started(driver, out, *words) as (_, mark):
        wait_for(lambda: emulators(mark), "emulated machine", BOOT_PATIENCE)
    wait_for(lambda: not tracking.marked(mark), "end of what it left", GONE_PATIENCE)
    wait_for(lambda: not (out / folder_lock.NAME).exists(), "end of its guard", GONE_PATIENCE)
    assert not set(tracking.SHM.iterdir()) - shm - tracking.mapped()
