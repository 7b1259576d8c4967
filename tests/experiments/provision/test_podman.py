"""When a Podman service is available, and what it is started with."""

import os
from pathlib import Path
from types import SimpleNamespace

import docker
import pytest

from experiments.environments.podman import RUNTIME
from experiments.processes import executables
from experiments.provision import podman, system
from experiments.provision.engine import EngineMissing
from experiments.provision.image import Image

SYS_RESOURCE = 1 << 24
NOWHERE = "unix:///nowhere/podman.sock"
IMAGE = Image("hbmcomm:openmpi", "sha256:1", "base", "3.11", "openmpi", "inputs", False)


def test_a_root_that_may_not_raise_limits_asks_for_none() -> None:
    assert podman.configuration(20000, 4096, 0x1FFFEFFFFFF) == (
        '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n'
    )


@pytest.mark.parametrize("capabilities", [SYS_RESOURCE, 0x1FFFFFFFFFF])
def test_a_root_that_may_raise_limits_keeps_the_machines_configuration(capabilities: int) -> None:
    assert podman.configuration(20000, 4096, capabilities) is None


def test_what_is_lacking_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTAINER_HOST", NOWHERE)
    monkeypatch.setattr(executables, "find", lambda name: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(EngineMissing, match=r"not installed; sudo apt-get install -y podman"),
        podman.running(tmp_path / "log"),
    ):
        pass


def test_without_root_another_environment_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executables, "find", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refusal = system.hindrance(RUNTIME)
    assert refusal
    assert "charliecloud" in refusal.remedy


def test_a_service_that_does_not_start_is_reported_with_its_last_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "podman"
    broken.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("CONTAINER_HOST", NOWHERE)
    monkeypatch.setattr(executables, "find", lambda name: str(broken))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with (
        pytest.raises(EngineMissing, match="does not answer: no room; read"),
        podman.running(tmp_path / "build" / "podman.log"),
    ):
        pass


class Store:
    """As much of the SDK's images as a transfer asks for; an image is saved as its name."""

    def __init__(self, *held: str) -> None:
        self.held = {*held}

    @property
    def images(self) -> "Store":
        return self

    def get(self, name: str) -> SimpleNamespace:
        if name not in self.held:
            raise docker.errors.ImageNotFound(name)
        return SimpleNamespace(save=lambda named: name)

    def load(self, name: str) -> None:
        self.held.add(name)

    def prune(self, filters: dict[str, object]) -> None:
        self.held.discard("superseded")


def test_an_image_is_brought_once() -> None:
    source, target = Store("sha256:1"), Store("superseded")
    lines: list[str] = []
    for _ in range(2):
        podman.bring(source, target, IMAGE, lines.append)  # type: ignore[arg-type]
    assert target.held == {"sha256:1"}
    assert lines == ["image: bringing hbmcomm:openmpi from Docker to Podman"]


def test_a_transfer_that_fails_is_reported_with_what_to_do() -> None:
    with pytest.raises(EngineMissing, match=r"openmpi could not be brought .*; see what both"):
        podman.bring(Store(), Store(), IMAGE, print)  # type: ignore[arg-type]
