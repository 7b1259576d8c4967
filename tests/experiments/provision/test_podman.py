"""When a Podman service is available, and what it is started with."""

import os
from pathlib import Path
from types import SimpleNamespace

import docker
import pytest

from experiments.environments.docker import SEVERAL
from experiments.environments.podman import RUNTIME
from experiments.processes import executables
from experiments.provision import podman, system, user_namespaces
from experiments.provision.engine import EngineMissing
from experiments.provision.image import Image

SYS_RESOURCE = 1 << 24
NOWHERE = "unix:///nowhere/podman.sock"
IMAGE = Image("hbmcomm:openmpi", "sha256:1", "base", "3.11", "openmpi", "inputs", False)


def test_a_root_that_may_not_raise_limits_asks_for_none() -> None:
    assert podman.configuration(20000, 4096, 0x1FFFEFFFFFF) == (
        '[containers]\ndefault_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]\n'
    )
    for capabilities in (SYS_RESOURCE, 0x1FFFFFFFFFF):
        assert podman.configuration(20000, 4096, capabilities) is None, "it may raise them"


def test_what_lacks_is_named_with_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONTAINER_HOST", NOWHERE)
    monkeypatch.setattr(executables, "find", lambda name: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with (
        pytest.raises(EngineMissing, match=r"not installed; sudo apt-get install -y podman"),
        podman.running(tmp_path / "log"),
    ):
        pass


def test_without_root_what_a_user_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lack = EngineMissing("no ids", "usermod")
    monkeypatch.setattr(executables, "find", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(user_namespaces, "hindrance", lambda: lack)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert system.hindrance(RUNTIME) is lack
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert system.hindrance(RUNTIME) is None


def test_a_service_of_a_user_answers_among_the_users_sockets_where_there_are_some(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for user, folder, answering in (
        (0, tmp_path, f"{podman.BUILD}/podman.7.sock"),
        (1000, tmp_path, f"{tmp_path}/hbmcomm-podman.7.sock"),
        (1000, tmp_path / "none", f"{podman.BUILD}/podman.7.sock"),
    ):
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert podman.started_address(7) == f"unix://{answering}"
        assert podman.is_rootless() == bool(user)


def test_a_user_namespace_is_refused_where_it_makes_no_difference() -> None:
    with pytest.raises(EngineMissing, match=r"all in user namespaces; leave it out of --profiles"):
        podman.refuse(True, ["tuned", "userns"])
    podman.refuse(True, ["default", "tuned", "privileged"], ["one"])


def test_a_user_namespace_of_root_needs_ids_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_namespaces, "of_root", lambda: (0, 0))
    with pytest.raises(EngineMissing, match=r"65536 ids for containers .*; useradd .*usermod"):
        podman.refuse(False, ["userns"])
    podman.refuse(False, ["tuned"])
    monkeypatch.setattr(user_namespaces, "of_root", lambda: (200000, 200000))
    podman.refuse(False, ["userns"], SEVERAL)


def test_several_containers_need_a_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for layout in SEVERAL:
        asked, tun = (True, ["tuned"], ["one", layout]), tmp_path / layout
        monkeypatch.setattr(executables, "find", lambda name: None)
        with pytest.raises(EngineMissing, match=f"layout {layout} needs .*apt-get .*slirp4netns"):
            podman.refuse(*asked)
        monkeypatch.setattr(executables, "find", lambda name: name if name == "pasta" else None)
        monkeypatch.setattr(podman, "TUN", str(tun))
        refusal = f"layout {layout} .*{tun}, which this user may not open"
        with pytest.raises(EngineMissing, match=refusal):
            podman.refuse(*asked)
        tun.touch()
        podman.refuse(*asked)


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
