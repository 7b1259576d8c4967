"""Real containers: what the engine's own filter takes from an MPI, and what gets it back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.analysis import data_path, mpi_transport_log
from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.environments.mpiexec import asking
from experiments.provision import image as image_provision
from experiments.provision import mpi_wheels as mpi_provision
from experiments.provision import passthrough
from experiments.provision.image import Image
from experiments.results.result import Result
from tests.experiments.environments.small_launch import small_launch
from tests.launched import made

pytestmark = [pytest.mark.container, pytest.mark.ranks]


def test_open_mpi_loses_single_copy_to_the_default_profile_and_tuned_gets_it_back(
    engine: docker.DockerClient,
    image: Image,
    measured: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    cores, asked = passthrough.cores(), asking("openmpi")
    inside = Docker(
        *("openmpi", image.id, image_provision.PREFIX, cores),
        *(passthrough.machine(), "test-paths", asked),
    )
    outside = Host("openmpi", mpi_provision.prefix("openmpi"), cores, asked)

    def shown(environment: Docker | Host, name: str, profile: str, arm: str) -> Result:
        launch = small_launch(name, profile, ("regular",))
        result = measured(environment, launch, engine)
        text = (tmp_path / f"{launch.name}.log").read_text()
        surroundings = mpi_transport_log.added(result["environment"], text)
        return made({"launch": {"arm": arm}, "environment": surroundings})

    host = shown(outside, "host", "", "host")
    if host.facts.datapath["chosen"]["single copy"] != "CMA":
        pytest.skip("this host allows no single copy itself")
    default = shown(inside, "docker", "default", "docker-default-one")
    tuned = shown(inside, "docker", "tuned", "docker-tuned-one")
    (loss,) = data_path.compare([host, default, tuned]).losses
    assert (loss.arm, loss.ways) == ("docker-default-one", ("single copy",))
    assert (loss.trial, loss.outcome) == ("kcmp", "refused (EPERM)")
    assert loss.kept_in == ("docker-tuned-one",)
    assert default.facts.datapath["chosen"]["said"].endswith("(i.e., CAP_SYS_PTRACE)")
