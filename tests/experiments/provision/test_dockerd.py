"""Users of an engine that one of them started: the last one ends it, and nobody before."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from experiments.processes import tracking
from experiments.provision import dockerd

USER = """
import sys, time
from pathlib import Path
from experiments.provision import dockerd as users
with users.counted(lambda: print("ended"), Path(sys.argv[1])):
    print("here", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def user(lock: Path) -> "subprocess.Popen[str]":
    words, pipe = [sys.executable, "-c", USER, str(lock)], subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    return process


def test_the_last_one_to_leave_ends_it_and_no_other(lock: Path) -> None:
    ended: list[str] = []
    with dockerd.counted(lambda: ended.append("by the second"), lock):
        with dockerd.counted(lambda: ended.append("by the first"), lock):
            assert dockerd.in_use(lock)
        assert ended == []
    assert ended == ["by the second"]
    assert not dockerd.in_use(lock)


def test_the_last_one_ends_it_in_another_process_too(lock: Path) -> None:
    other, ended = user(lock), []
    with dockerd.counted(lambda: ended.append(1), lock):
        pass
    assert ended == []
    assert other.communicate("\n", timeout=10)[0] == "ended\n"


def test_who_is_killed_is_no_user_any_more(lock: Path) -> None:
    other, ended = user(lock), []
    with dockerd.counted(lambda: ended.append(1), lock):
        other.kill()
        other.communicate()
    assert ended == [1]


def test_without_rights_nothing_is_ended_and_nothing_fails(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing/lock"
    with dockerd.counted(lambda: pytest.fail("ended"), nowhere), dockerd.starting(nowhere):
        assert not dockerd.in_use(nowhere)


@contextlib.contextmanager
def daemon(folder: Path, variables: Mapping[str, str]) -> Iterator["subprocess.Popen[bytes]"]:
    """A process by the name of dockerd, which folder/docker.pid names."""
    shutil.copy(shutil.which("sleep") or "sleep", folder / "dockerd")
    with subprocess.Popen([folder / "dockerd", "600"], env=variables, start_new_session=True) as it:
        while not Path(f"/proc/{it.pid}/environ").read_bytes():  # Popen returns a little before
            time.sleep(0.001)
        (folder / "docker.pid").write_text(str(it.pid))
        yield it
        it.kill()


def test_an_engine_of_ours_is_ended_and_no_zombie_stays(tmp_path: Path, pidfile: Path) -> None:
    with daemon(tmp_path, tracking.daemon_environment(os.environ)) as process:
        assert dockerd.ours(pidfile) == tracking.identity(process.pid)
        dockerd.end_ours(pidfile)
        with pytest.raises(ChildProcessError):
            os.waitpid(process.pid, os.WNOHANG)
        assert dockerd.ours(pidfile) == ""


def test_an_engine_of_the_machine_is_left_alone(tmp_path: Path, pidfile: Path) -> None:
    with daemon(tmp_path, os.environ) as process:
        assert dockerd.ours(pidfile) == ""
        dockerd.end_ours(pidfile)
        assert process.poll() is None


@pytest.fixture(autouse=True)
def pidfile(tmp_path, monkeypatch):
    """That of dockerd, which is in the test's folder as the sockets of both engines are."""
    path = tmp_path / "docker.pid"
    monkeypatch.setattr(dockerd, "PIDFILES", {path: "dockerd"})
    monkeypatch.setattr(dockerd, "SYSTEM_CONTAINERD", tmp_path / "containerd.sock")
    monkeypatch.setattr(dockerd, "SOCKET", tmp_path / "docker.sock")
    return path


def test_the_pidfile_of_a_living_dockerd_stays(pidfile, monkeypatch):
    pidfile.write_text(f"{os.getpid()}\n")
    monkeypatch.setitem(dockerd.PIDFILES, pidfile, Path("/proc/self/comm").read_text().strip())
    assert not dockerd.clear_leftovers()
    assert pidfile.exists()


def test_a_zombie_is_a_leftover(pidfile, monkeypatch):
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    name = Path(f"/proc/{zombie.pid}/comm").read_text().strip()
    pidfile.write_text(str(zombie.pid))
    monkeypatch.setitem(dockerd.PIDFILES, pidfile, name)
    dockerd.clear_leftovers()
    zombie.wait()
    assert not pidfile.exists()


def test_a_pidfile_that_names_no_dockerd_is_a_leftover(pidfile):
    for content in ("", "not a number", "-1", "1"):
        pidfile.write_text(content)
        assert not dockerd.clear_leftovers()
        assert not pidfile.exists(), content


def test_a_socket_that_nobody_listens_on_is_a_leftover(tmp_path):
    for path in (tmp_path / "containerd.sock", tmp_path / "docker.sock"):
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
            assert not dockerd.listens(path)
            listener.listen()
            assert dockerd.listens(path)
            dockerd.clear_leftovers()
            assert path.exists()
        assert not dockerd.listens(path)
        dockerd.clear_leftovers()
        assert not path.exists()


def test_the_complaint_is_the_last_line_said(tmp_path):
    log = tmp_path / "dockerd.log"
    assert dockerd.complaint(log) == "its log is empty"
    log.write_text("info: starting\nfailed to start daemon: no space left\n\n")
    assert dockerd.complaint(log) == "failed to start daemon: no space left"
