"""A campaign in an emulated machine that is stopped or killed: nothing stays, all can go on.

Runs with the tests that look at the whole machine, since no other may use its shared memory.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.emulation import qemu_command
from experiments.emulation.qemu_command import Disk
from experiments.processes import folder_lock, tracking
from experiments.results import store
from tests.awaiting import wait_for
from tests.left import nothing_left
from tests.tiny_campaign import tiny

pytestmark = [pytest.mark.ranks, pytest.mark.container, pytest.mark.rare, pytest.mark.timeout(900)]

BOOT_PATIENCE = 400.0  # seconds until a launch begins; the disk may have to be made first
GONE_PATIENCE = 15.0  # seconds until nothing of a killed driver may be left
CHANGES: dict[str, dict[str, Any]] = {
    "factors": {"transports": ["direct"], "sizes": "64KiB"},
    "launches": {"environments": ["vm:plain"], "ranks": [4], "bindings": ["spread"]},
    "measurement": {"min_iterations": 2, "max_iterations": 4},
}


@pytest.fixture
def words(tmp_path: Path, disk: Disk) -> tuple[str, ...]:
    """The flags that begin the campaign."""
    path = tmp_path / "stopped.toml"
    path.write_text(tiny(**CHANGES))
    return "--experiment", str(path)


@pytest.fixture
def out(tmp_path: Path) -> Iterator[Path]:
    """The campaign's results folder; fails where anything stays in shared memory."""
    with nothing_left():
        yield tmp_path / "out"


def emulators(mark: str) -> set[str]:
    """QEMU's processes among those that carry a driver's mark."""
    return {
        process for process in tracking.marked(mark) if _is_emulator(int(process.partition(".")[0]))
    }


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
    driver: Any, words: tuple[str, ...], out: Path
) -> None:
    with started(driver, out, *words) as (process, mark):
        wait_for(in_its_first_launch(out), "launch under way", BOOT_PATIENCE)
        (emulator,) = emulators(mark)
        os.kill(int(emulator.partition(".")[0]), signal.SIGKILL)
        output = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "is gone: the guest of plain ended: QEMU ended with code -9" in output
    assert "--resume goes on from here" in output
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
    assert not (out / "incoming").exists()


def test_no_emulator_outlives_a_killed_driver(
    driver: Any, words: tuple[str, ...], out: Path
) -> None:
    with started(driver, out, *words) as (_, mark):
        wait_for(lambda: emulators(mark), "emulated machine", BOOT_PATIENCE)
    wait_for(lambda: not tracking.marked(mark), "end of what it left", GONE_PATIENCE)
    wait_for(lambda: not (out / folder_lock.NAME).exists(), "end of its guard", GONE_PATIENCE)
