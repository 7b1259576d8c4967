"""Users of an engine that one of them started: the last one ends it, and nobody before."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.processes import tracking
from experiments.provision.engines import dockerd, engine_refcount

USER = """
import sys, time
from pathlib import Path
from experiments.provision.engines import engine_refcount as users
with users.counted(lambda: print("ended"), Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def user(lock: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", USER, str(lock)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def test_the_last_one_to_leave_ends_it_and_no_other(lock: Path) -> None:
    ended: list[str] = []
    with engine_refcount.counted(lambda: ended.append("by the second"), lock):
        with engine_refcount.counted(lambda: ended.append("by the first"), lock):
            assert engine_refcount.in_use(lock)
        assert ended == []
    assert ended == ["by the second"]
    assert not engine_refcount.in_use(lock)


def test_the_one_who_stays_ends_it_in_another_process_too(lock: Path) -> None:
    other, ended = user(lock), []
    with engine_refcount.counted(lambda: ended.append(1), lock):
        pass
    assert ended == []
    assert other.communicate("\n", timeout=10)[0] == "ended\n"


def test_who_is_killed_is_no_user_any_more(lock: Path) -> None:
    other, ended = user(lock), []
    with engine_refcount.counted(lambda: ended.append(1), lock):
        other.kill()
        other.communicate()
    assert ended == [1]


def test_without_rights_nothing_is_ended_and_nothing_fails(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing/lock"
    with (
        engine_refcount.counted(lambda: pytest.fail("ended"), nowhere),
        engine_refcount.starting(nowhere),
    ):
        assert not engine_refcount.in_use(nowhere)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    """A process by the name of dockerd, as a driver starts it, and the file that names it."""
    program, pidfile = tmp_path / "dockerd", tmp_path / "docker.pid"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    process = subprocess.Popen(
        [program, "600"], env=tracking.daemon_environment(os.environ), start_new_session=True
    )
    while not Path(f"/proc/{process.pid}/environ").read_bytes():  # Popen returns a little before
        time.sleep(0.001)
    pidfile.write_text(str(process.pid))
    yield pidfile, process
    process.kill()
    process.wait()


def test_an_engine_of_ours_is_known_and_ended_and_no_zombie_stays(
    daemon: tuple[Path, "subprocess.Popen[bytes]"],
) -> None:
    pidfile, process = daemon
    assert dockerd.ours(pidfile) == tracking.identity(process.pid)
    dockerd.end_ours(pidfile)
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, os.WNOHANG)
    assert dockerd.ours(pidfile) == ""


def test_an_engine_of_the_machine_is_left_alone(tmp_path: Path) -> None:
    program, pidfile = tmp_path / "dockerd", tmp_path / "docker.pid"
    shutil.copy(shutil.which("sleep") or "sleep", program)
    with subprocess.Popen([program, "600"]) as process:
        pidfile.write_text(str(process.pid))
        assert dockerd.ours(pidfile) == ""
        dockerd.end_ours(pidfile)
        assert process.poll() is None
        process.kill()
