"""Which packages a system and an image have."""

import io
import subprocess
import tarfile
from unittest.mock import create_autospec

import docker
import pytest

from experiments.driver import inventory
from experiments.provision.image import Image

STATUS = """Package: libc6
Status: install ok installed
Version: 2.36-9
Description: GNU C Library
 Version: of a longer text

Package: gone
Status: deinstall ok config-files
Version: 1.0
"""


def test_of_system_agrees_with_dpkg() -> None:
    try:
        status = ["dpkg-query", "--show", "--showformat=${Version}", "libc6"]
        wanted = subprocess.run(status, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no dpkg here")
    assert inventory.system_packages()["libc6"] == wanted
    assert inventory.system_packages(["no-such-package"]) == {}


def test_without_dpkg_nothing_is_known_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert inventory.system_packages() == {}


def test_what_is_removed_from_an_image_is_not_in_its_list() -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        entry = tarfile.TarInfo("status")
        entry.size = len(STATUS)
        tar.addfile(entry, io.BytesIO(STATUS.encode()))
    engine = create_autospec(docker.DockerClient, instance=True)
    container = engine.containers.create.return_value
    container.get_archive.return_value = [packed.getvalue()], {}
    assert inventory.image_packages(engine, "image") == {"libc6": "2.36-9"}
    container.remove.assert_called_once_with(force=True)


@pytest.mark.container
def test_an_image_tells_its_packages_and_how_it_is_made(
    engine: docker.DockerClient, image: Image
) -> None:
    packages = inventory.image_packages(engine, image.id)
    assert {"libc6", "python3"} <= packages.keys()
    assert inventory.image_packages(engine, "no-such-image") == {}
    assert "FROM ${BASE}" in image.dockerfile
    assert any(wheel.name.startswith("hbmcomm-") for wheel in image.wheels)
    assert image.base_id.startswith("sha256:")
