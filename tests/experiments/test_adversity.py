"""What a campaign says and keeps when the engine goes away or the disk is full."""

import contextlib
import os
import socket
import subprocess
import threading
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
from tests.awaiting import wait_for

pytestmark = pytest.mark.ranks
ENGINE = "/var/run/docker.sock"


class Wire:
    """A socket that leads to the engine until it is cut."""

    def __init__(self, path: Path) -> None:
        self.address = f"unix://{path}"
        self._open: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(path))
        self._door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def cut(self) -> None:
        for end in (self._door, *self._open):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._door.accept()
                far = socket.socket(socket.AF_UNIX)
                far.connect(ENGINE)
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that has room for a launch or two."""
    if os.getuid() != 0:
        pytest.skip("mounting a file system of its own needs root")
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=160k", "tmpfs", str(place)]
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("this sandbox mounts no tmpfs")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.container
def test_an_engine_that_stops_in_the_middle_loses_nothing(
    driver: Any, tmp_path: Path, engine: docker.DockerClient, image: Image
) -> None:
    if not Path(ENGINE).exists():
        pytest.skip(f"the engine does not listen at {ENGINE}")
    out, wire = tmp_path / "out", Wire(tmp_path / "engine.sock")
    process = driver.measure("docker", out, DOCKER_HOST=wire.address)
    try:
        wait_for(lambda: len(store.finished(out)) == 1, "finished launch")
        wait_for(lambda: list(out.glob("incoming/*/progress")), "launch under way")
        wire.cut()
        output = process.communicate(timeout=120)[1]
    finally:
        process.kill()
    assert process.returncode == 1, output
    assert "the container engine failed" in output
    assert "--resume" in output
    assert "Traceback" not in output
    assert len(store.finished(out)) == 1
    driver.resume(out)
    assert len(reading.load(out).launches) == 3
    label = f"{LABEL}={store.read_header(out)['id']}-{ownership.digest_of(out)}"
    assert engine.containers.list(all=True, filters={"label": label}) == []


def test_a_full_disk_is_one_message_and_no_torn_result(driver: Any, small_disk: Path) -> None:
    out = small_disk / "out"
    process = driver.measure("host", out)  # its samples fill it
    output = process.communicate(timeout=240)[1]
    assert process.returncode == 1, output
    assert "No space left on device" in output
    assert "Traceback" not in output
    assert not (out / "incoming").exists()
    launches = {path.stem for path in (out / "launches").iterdir()}
    assert launches == store.finished(out)
