"""Podman for real: the same image, the same options, the same harness as in Docker."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.environments.docker import Docker
from experiments.environments.podman import RUNTIME as PODMAN
from experiments.provision import image as image_provision
from experiments.provision import passthrough, podman, removal, system
from experiments.provision.image import Image
from tests.experiments.environments.small_launch import small_launch

pytestmark = [pytest.mark.container, pytest.mark.ranks]


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    """A client of a Podman service."""
    if refusal := system.hindrance(PODMAN):
        pytest.skip(str(refusal))
    with podman.running() as found:
        yield found


@pytest.fixture(scope="module")
def podman_image(client: docker.DockerClient, image: Image) -> Image:
    """The harness image, brought from Docker to Podman."""
    found = podman.ensure_image(client)
    assert found.id == image.id
    return found


@pytest.mark.parametrize(
    ("profile", "method"), [("default", "get_mempolicy"), ("tuned", "move_pages")]
)
def test_every_operation_is_right_in_podman(
    client: docker.DockerClient,
    podman_image: Image,
    measured: Callable[..., dict[str, Any]],
    profile: str,
    method: str,
) -> None:
    environment = Docker(
        *("openmpi", podman_image.id, image_provision.PREFIX, passthrough.cores()),
        *(passthrough.machine(), "test-podman", {"MEMKIND_HBW_NODES": "0"}),
        engine="podman",
    )
    result = measured(environment, small_launch("podman", profile), client)
    tried = result["environment"]["datapath"]
    assert int(tried["capabilities_effective"], 16) == 0
    assert tried["uid"] != 0
    assert tried["seccomp"] == "2"
    assert tried["cma"] == "works"  # unlike an old Docker's, Podman's own filter allows it
    assert tried["kcmp"] == ("refused (EPERM)" if profile == "default" else "works")
    methods = {pool["placement_method"] for rank in result["ranks"] for pool in rank["pools"]}
    assert methods == {method}
    assert removal.remove(client, "test-podman") == []


def sockets() -> list[Path]:
    return list(podman.BUILD.glob(f"podman.{os.getpid()}.sock"))


def test_a_service_that_we_started_ends_with_us(tmp_path: Path) -> None:
    if system.hindrance(PODMAN) or podman.answering():
        pytest.skip("a service runs already, or none can be had")
    with podman.running(tmp_path / "podman.log") as found:
        assert found.ping()
        assert [str(os.getpid())] == [path.suffixes[0][1:] for path in sockets()]
    assert sockets() == []
    assert (tmp_path / "podman.log").exists()
