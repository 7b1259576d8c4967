"""An engine and the harness image for tests marked `container`, and the driver as a user starts it.

What an engine needs is installed and started where that may be done; else the tests skip and say
why.
"""

import contextlib
import functools
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import docker
import pytest

from experiments.model.checkout import BUILD
from experiments.model.environment import MPIS
from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from experiments.provision import building, system
from experiments.provision import engine as engine_provision
from experiments.provision import image as image_provision
from experiments.provision.image import Image
from tests.tiny_campaign import tiny

TURN = 0.2  # seconds in which whoever waits for the lock on images gets it, before the next image


@pytest.fixture(scope="session")
def engine() -> Iterator[docker.DockerClient]:
    """A client of an engine that answers."""
    lacking = system.ensure(yes=True)
    with contextlib.ExitStack() as stack:
        try:
            client = stack.enter_context(engine_provision.running())
        except engine_provision.EngineMissing as error:
            pytest.skip(str(lacking or error))
        yield client


@pytest.fixture(scope="session")
def images(engine: docker.DockerClient) -> Iterator[Callable[..., Future[Image]]]:
    """images(mpi, torch=False): a harness image, which is made while tests run; one at a time."""
    with ThreadPoolExecutor(1) as pool:

        @functools.cache
        def begun(mpi: str, torch: bool = False) -> Future[Image]:
            return pool.submit(_ensured, engine, mpi, torch)

        yield begun
        pool.shutdown(cancel_futures=True)


@pytest.fixture(scope="session", autouse=True)
def _images_ahead(request: pytest.FixtureRequest) -> None:
    """Begin with all images at once, where tests of jobs want them all: one core makes an image."""
    wanted = {name for item in request.session.items for name in item.fixturenames}
    with contextlib.suppress(pytest.skip.Exception):
        begun = request.getfixturevalue("images") if wanted & {"prepared", "torch_image"} else None
        for mpi in MPIS if "prepared" in wanted else ():
            begun(mpi)
        if "torch_image" in wanted and importlib.util.find_spec("torch"):
            begun("openmpi", torch=True)


@pytest.fixture(scope="session")
def image(images: Callable[..., Future[Image]]) -> Image:
    """The harness image with Open MPI."""
    return _made(images("openmpi"))


@pytest.fixture(scope="session")
def torch_image(images: Callable[..., Future[Image]]) -> Image:
    """The harness image with Open MPI and torch."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch ninja")
    return _made(images("openmpi", torch=True))


def _ensured(engine: docker.DockerClient, mpi: str, torch: bool) -> Image:
    """The image; a group of tests that runs beside this one waits, and finds it made."""
    with scratch.locked(BUILD, ".image.lock"):
        image = image_provision.ensure(engine, mpi=mpi, torch=torch)
    time.sleep(TURN)
    return image


def _made(begun: Future[Image]) -> Image:
    """The image, or skip where the machine lacks what it is made from."""
    try:
        return begun.result()
    except building.ImageBuildFailed:
        raise  # a defect of ours, never a lack of the machine
    except ExperimentsError as error:
        pytest.skip(str(error))


class Driver:
    """The driver in a session of its own, over a campaign of three launches of some seconds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def measure(self, environment: str, out: Path, **variables: str) -> "subprocess.Popen[str]":
        """Start to measure the campaign into `out`."""
        path = self._folder / "small.toml"
        path.write_text(
            tiny(
                factors={"operations": ["bcast", "gather", "allreduce"], "sizes": "1KiB:1MiB:16"},
                launches={"environments": [environment], "blocks": 3},
                measurement={"time_cap": 0.02, "min_iterations": 100, "max_iterations": 100_000},
            )
        )
        return self.start("run", "--experiment", str(path), "--out", str(out), **variables)

    def resume(self, out: Path) -> None:
        """Complete a campaign."""
        process = self.start("run", "--resume", "--out", str(out))
        output = process.communicate(timeout=240)[1]
        assert process.returncode == 0 and "measurement:" in output, output

    def start(self, *words: str, **variables: str) -> "subprocess.Popen[str]":
        """Start invoke with these words, its output to be read by the test."""
        return subprocess.Popen(
            [sys.executable, "-m", "invoke", *words],
            cwd=Path(__file__).parents[2],
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def driver(tmp_path: Path) -> Driver:
    """How a test runs the driver as a user does."""
    return Driver(tmp_path)
