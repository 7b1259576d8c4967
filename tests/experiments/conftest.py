"""A container engine and the harness image for tests marked `container`, once per session.

What is missing is installed and started where that may be done; else the tests skip and say why.
"""

import contextlib
from collections.abc import Iterator

import docker
import pytest

from experiments.errors import ExperimentsError
from experiments.provision import engine as engine_provision
from experiments.provision import image as image_provision
from experiments.provision import packages
from experiments.provision.image import Image


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of an engine that answers."""
    lacking = packages.ensure(yes=True)
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(engine_provision.running())
        except engine_provision.EngineMissing as error:
            pytest.skip(str(lacking or error))
        yield client


@pytest.fixture(scope="session")
def image(engine: docker.DockerClient) -> Image:
    """The harness image with Open MPI."""
    try:
        return image_provision.ensure(engine)
    except image_provision.ImageBuildFailed:
        raise  # a defect of ours, never a lack of the machine
    except ExperimentsError as error:
        pytest.skip(str(error))
