"""The guard of a driver: waits for nothing, outlives it, clears away after it, and takes its leave.

The driver is a few lines of Python here; test_kills.py kills the real one.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.driver import reaper, watchdog
from experiments.model.errors import ExperimentsError
from experiments.processes import folder_lock, tracking
from tests.awaiting import wait_for
from tests.experiments.running import running

PATIENCE = 20.0  # seconds

pytestmark = pytest.mark.alone

DRIVER = """
import os, subprocess, sys, time
from pathlib import Path
from experiments.driver import watchdog as guard
from experiments.processes import tracking as leftovers
out, daemon, segment = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
with guard.watching(out, print):
    for name in ("incoming/0000-host", "launches", "logs"):
        (out / name).mkdir(parents=True)
    (out / "incoming/0000-host/progress").write_text("1 2 3")
    (out / ".table.json.77").write_text("{")
    (out / "launches/0000-host.npz").write_text("samples")
    rank = subprocess.Popen(["sleep", "600"], start_new_session=True)
    engine = subprocess.Popen(
        [daemon, "600"], env=leftovers.daemon_environment(os.environ), start_new_session=True
    )
    segment.write_text("x")
    print(rank.pid, engine.pid, flush=True)
    time.sleep(600)
"""


class Driver:
    """A driver that has started a rank, an engine and a segment."""

    def __init__(self, folder: Path, segment: Path) -> None:
        daemon = folder / "dockerd"
        shutil.copy(shutil.which("sleep") or "sleep", daemon)
        self.out, self.segment = folder / "out", segment
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, str(self.out), str(daemon), str(segment)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        pids = [int(word) for word in self.process.stdout.readline().split()]
        self.identity = tracking.identity(self.process.pid)
        self.rank, self.engine = (tracking.identity(pid) for pid in pids)


def guard_of(folder: Path) -> int:
    """The guard's process number. A program that is just being started shows no command."""
    words = (reaper.__name__, str(folder))
    wait_for(lambda: running(*words), "guard")
    return running(*words)[0]


@pytest.fixture
def shm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in place of /dev/shm. There, the end of any launch removes unmapped files."""
    path = tmp_path / "shm"
    path.mkdir()
    monkeypatch.setenv(tracking.NAMED_SHM, str(path))
    return path


@pytest.fixture
def driver(tmp_path: Path, shm: Path) -> Iterator[Driver]:
    made = Driver(tmp_path, shm / "sm_segment.1")
    yield made
    made.process.kill()
    made.process.wait()
    tracking.end_marked(made.identity)
    tracking.end_daemons(made.identity, 5)


@pytest.mark.parametrize("group", [False, True])
def test_what_a_killed_driver_started_ends_and_what_it_finished_stays(
    driver: Driver, group: bool
) -> None:
    lock = driver.out / folder_lock.NAME
    (os.killpg if group else os.kill)(driver.process.pid, signal.SIGKILL)
    wait_for(lambda: not lock.exists(), "end of the lock", PATIENCE)
    assert [tracking.lives(who) for who in (driver.rank, driver.engine)] == [False, False]
    assert not driver.segment.exists()
    assert {path.name for path in driver.out.iterdir()} == {"launches", "logs"}
    assert (driver.out / "launches/0000-host.npz").exists()
    (line,) = (driver.out / reaper.LOG).read_text().splitlines()
    assert f"process {driver.identity} was killed; cleared in" in line
    for part in ("processes: 1", driver.segment.name, "incoming", "engines started for it: 1"):
        assert part in line


def test_the_next_driver_is_refused_and_once_the_first_is_killed_waits_until_all_is_cleared_away(
    driver: Driver,
) -> None:
    lines: list[str] = []
    refused = f"another driver .process {driver.process.pid}. measures"
    with pytest.raises(ExperimentsError, match=refused), watchdog.watching(driver.out, print):
        pass
    assert tracking.lives(driver.rank)
    driver.process.kill()
    driver.process.wait()
    with watchdog.watching(driver.out, lines.append):
        assert not tracking.lives(driver.rank)
        assert not (driver.out / "incoming").exists()
    assert lines == [f"waiting until what a killed driver left of {driver.out} is cleared away"]


def test_the_next_driver_clears_away_where_the_guard_was_killed_too(driver: Driver) -> None:
    os.kill(guard_of(driver.out), signal.SIGKILL)
    os.killpg(driver.process.pid, signal.SIGKILL)
    driver.process.wait()
    lines: list[str] = []
    with watchdog.watching(driver.out, lines.append):
        assert not tracking.lives(driver.rank)
        assert not tracking.lives(driver.engine)
        assert not driver.segment.exists()
    assert lines[-1].startswith("cleared away of a killed driver: processes: 1")


def test_a_guard_outlives_signals_and_ends_no_engine_of_another_driver(
    driver: Driver, tmp_path: Path
) -> None:
    guarding = tracking.identity(guard_of(driver.out))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(guard_of(driver.out), number)
    time.sleep(0.3)
    assert tracking.lives(guarding)
    command = [str(tmp_path / "dockerd"), "600"]
    with subprocess.Popen(command, env=tracking.daemon_environment(os.environ)) as other:
        driver.process.kill()
        wait_for(lambda: not tracking.lives(guarding), "end of the guard", PATIENCE)
        assert not tracking.lives(driver.rank)
        assert not (driver.out / folder_lock.NAME).exists()
        assert other.poll() is None
        other.kill()


def test_a_driver_that_ends_by_itself_takes_the_guard_with_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with watchdog.watching(out, print):
        (out / "logs").mkdir(parents=True)
        assert os.environ[tracking.MARK] == tracking.own_mark()
        guarding = tracking.identity(guard_of(out))
    assert not tracking.lives(guarding)
    assert [path.name for path in out.iterdir()] == ["logs"]
    assert tracking.MARK not in os.environ


def test_an_interruption_between_a_beginning_and_its_end_leaves_nothing(
    tmp_path: Path, shm: Path
) -> None:
    out, segment = tmp_path / "out", shm / "sm_segment.1"
    with pytest.raises(KeyboardInterrupt), watchdog.watching(out, print):
        (out / "incoming/0000-host").mkdir(parents=True)
        (out / ".table.json.77").write_text("{")
        (out / "kept").write_text("finished")
        rank = subprocess.Popen(["sleep", "600"], start_new_session=True)
        segment.write_text("x")
        raise KeyboardInterrupt
    assert rank.wait(5) == -signal.SIGTERM
    assert not segment.exists()
    assert [path.name for path in out.iterdir()] == ["kept"]


def test_a_guard_that_was_killed_does_not_hinder_its_driver(tmp_path: Path) -> None:
    with watchdog.watching(tmp_path, print):
        os.kill(guard_of(tmp_path), signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []


def test_waiting_costs_no_import_of_what_only_clearing_needs() -> None:
    heavy = "{'docker', 'numpy', 'pandas', 'rich', 'requests', 'hbmcomm'}"
    code = "import sys, experiments.driver.reaper\n"
    code += f"print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_facts_of_another_boot_end_no_process_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracking, "SHM", tmp_path)  # launches of other tests share the real one
    with subprocess.Popen(["sleep", "600"], env={tracking.MARK: "1.1.5ec"}) as other:
        facts = {"driver": "1.1", "mark": "1.1.5ec", "place": "another boot", "segments": []}
        assert reaper.clear(tmp_path, facts) == "nothing was left"
        assert other.poll() is None
        assert (
            reaper.clear(tmp_path, facts | {"place": folder_lock.pid_namespace()}) == "processes: 1"
        )
        assert other.wait(5) == -signal.SIGTERM
