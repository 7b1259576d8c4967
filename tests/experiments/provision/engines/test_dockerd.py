import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.provision.engines import dockerd


@pytest.fixture
def pidfile(tmp_path):
    return tmp_path / "docker.pid"


@pytest.fixture
def socket_path(tmp_path):
    return tmp_path / "containerd.sock"


def own_name():
    return Path("/proc/self/comm").read_text().strip()


def test_the_pidfile_of_a_living_dockerd_stays(pidfile, socket_path):
    pidfile.write_text(f"{os.getpid()}\n")
    assert not dockerd.clear_leftovers({pidfile: own_name()}, socket_path)
    assert pidfile.exists()


def test_a_zombie_is_a_leftover(pidfile, socket_path):
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    name = Path(f"/proc/{zombie.pid}/comm").read_text().strip()
    pidfile.write_text(str(zombie.pid))
    dockerd.clear_leftovers({pidfile: name}, socket_path)
    zombie.wait()
    assert not pidfile.exists()


@pytest.mark.parametrize("content", ["", "not a number", "-1", "1"])
def test_a_pidfile_that_names_no_dockerd_is_a_leftover(pidfile, socket_path, content):
    pidfile.write_text(content)
    assert not dockerd.clear_leftovers({pidfile: "dockerd"}, socket_path)
    assert not pidfile.exists()


def test_a_socket_that_nobody_listens_on_is_a_leftover(pidfile, socket_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_path))
        listener.listen()
        dockerd.clear_leftovers({}, socket_path)
        assert socket_path.exists()
    dockerd.clear_leftovers({}, socket_path)
    assert not socket_path.exists()


def test_the_complaint_is_the_last_line_said(tmp_path):
    log = tmp_path / "dockerd.log"
    assert dockerd.complaint(log) == "its log is empty"
    log.write_text("info: starting\nfailed to start daemon: no space left\n\n")
    assert dockerd.complaint(log) == "failed to start daemon: no space left"
