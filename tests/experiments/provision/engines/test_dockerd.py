import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provision.engines import dockerd


@pytest.fixture(autouse=True)
def pidfile(tmp_path, monkeypatch):
    found = tmp_path / "docker.pid"
    monkeypatch.setattr(dockerd, "PIDFILES", {found: "dockerd"})
    return found


@pytest.fixture(autouse=True)
def socket_path(tmp_path, monkeypatch):
    found = tmp_path / "containerd.sock"
    monkeypatch.setattr(dockerd, "SYSTEM_CONTAINERD", found)
    return found


@pytest.fixture(autouse=True)
def own_socket(tmp_path, monkeypatch):
    found = tmp_path / "docker.sock"
    monkeypatch.setattr(dockerd, "SOCKET", found)
    return found


def own_name():
    return Path("/proc/self/comm").read_text().strip()


def test_the_pidfile_of_a_living_dockerd_stays(pidfile, monkeypatch):
    pidfile.write_text(f"{os.getpid()}\n")
    monkeypatch.setitem(dockerd.PIDFILES, pidfile, own_name())
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


@pytest.mark.parametrize("content", ["", "not a number", "-1", "1"])
def test_a_pidfile_that_names_no_dockerd_is_a_leftover(pidfile, content):
    pidfile.write_text(content)
    assert not dockerd.clear_leftovers()
    assert not pidfile.exists()


@pytest.mark.parametrize("name", ["containerd.sock", "docker.sock"])
def test_a_socket_that_nobody_listens_on_is_a_leftover(tmp_path, name):
    path = tmp_path / name
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
