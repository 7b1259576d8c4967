"""Podman for real: the same image, the same options, the same harness as in Docker."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.environments.docker import Docker
from experiments.environments.podman import RUNTIME as PODMAN
from experiments.processes import executables
from experiments.provision import image as image_provision
from experiments.provision import passthrough, podman, removal, system, user_namespaces
from experiments.provision.image import Image
from tests.experiments.environments.small_launch import small_launch

pytestmark = [pytest.mark.container, pytest.mark.ranks]


@pytest.fixture(scope="module")
def lending(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Podman that finds ids for user namespaces of root in /etc/subuid, for its eyes alone."""
    program = executables.find(PODMAN.program)
    if program is None or os.geteuid() or all(user_namespaces.of_root()):
        yield
        return
    folder, free = tmp_path_factory.mktemp("lending"), user_namespaces.without_ids_of_root
    first = re.search(r"--add-subuids (\d+)-", free().remedy)
    assert first
    files = []
    for file in user_namespaces.SUBORDINATE:
        known = file.read_text() if file.exists() else ""
        files.append(folder / file.name)
        files[-1].write_text(f"{known}containers:{first[1]}:65536\n")
    mounts = (
        f'mount --bind "{copy}" {file}'
        for copy, file in zip(files, user_namespaces.SUBORDINATE, strict=True)
    )
    shim = folder / "podman"
    shim.write_text(
        "#!/bin/sh\nexec unshare --mount --propagation=private "
        f'sh -ec \'{"; ".join(mounts)}; exec {program} "$@"\' sh "$@"\n'
    )
    shim.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        find = executables.find
        patch.setattr(
            executables, "find", lambda name: str(shim) if name == "podman" else find(name)
        )
        patch.setattr(user_namespaces, "SUBORDINATE", tuple(files))
        yield


@pytest.fixture(scope="module")
def client(lending: None) -> Iterator[docker.DockerClient]:
    """A client of a Podman service."""
    if refusal := system.hindrance(PODMAN):
        pytest.skip(str(refusal))
    with podman.running() as podman_client:
        yield podman_client


@pytest.fixture(scope="module")
def podman_image(client: docker.DockerClient, image: Image) -> Image:
    """The harness image, brought from Docker to Podman."""
    copy = podman.ensure_image(client)
    assert copy.id == image.id
    return copy


@pytest.mark.parametrize(
    ("profile", "method"),
    [("default", "get_mempolicy"), ("tuned", "move_pages"), ("userns", "move_pages")],
)
def test_every_operation_is_right_in_podman(
    client: docker.DockerClient,
    podman_image: Image,
    measured: Callable[..., dict[str, Any]],
    profile: str,
    method: str,
) -> None:
    environment = Docker(
        *(podman_image.id, image_provision.PREFIX, passthrough.cores()),
        *(passthrough.machine(), "test-podman", {"MEMKIND_HBW_NODES": "0"}),
        engine="podman",
    )
    if profile == "userns":
        podman.refuse(podman.is_rootless(client), [profile])
    result = measured(environment, small_launch("podman", profile), client)
    tried = result["environment"]["datapath"]
    own = str(Path("/proc/self/ns/user").readlink())
    assert (tried["namespaces"]["user"] == own) == (profile != "userns")
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
    with podman.running(tmp_path / "podman.log") as podman_client:
        assert podman_client.ping()
        assert [str(os.getpid())] == [path.suffixes[0][1:] for path in sockets()]
    assert sockets() == []
    assert (tmp_path / "podman.log").exists()
