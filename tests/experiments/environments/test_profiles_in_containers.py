"""Real containers of each profile: every operation's data is right, over direct and over MPI.

What the harness tried in them is what the profile promises.
"""

from collections.abc import Callable
from typing import Any

import docker
import pytest

from experiments.environments import profiles
from experiments.environments.docker import Docker
from experiments.provision import image as image_provision
from experiments.provision import passthrough
from experiments.provision.image import Image
from tests.experiments.environments.small_launch import small_launch

pytestmark = [pytest.mark.container, pytest.mark.ranks]


@pytest.mark.parametrize(
    ("profile", "kinds", "method"),
    [
        ("default", ("regular",), "numa_maps"),  # the engine's own filter refuses to bind
        ("tuned", ("regular", "hbw"), "move_pages"),
        ("privileged", ("regular", "hbw"), "move_pages"),
    ],
)
def test_every_operation_is_right_in_every_profile(
    engine: docker.DockerClient,
    image: Image,
    measured: Callable[..., dict[str, Any]],
    profile: str,
    kinds: tuple[str, ...],
    method: str,
) -> None:
    environment = Docker(
        *("openmpi", image.id, image_provision.PREFIX, passthrough.cores()),
        *(passthrough.machine(), "test-profiles", {"MEMKIND_HBW_NODES": "0"}),
    )
    result = measured(environment, small_launch("docker", profile, kinds), engine)
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
    assert {(pool["kind"], pool["source"]) for pool in pools} == {(kind, "arena") for kind in kinds}
    assert {pool["placement_method"] for pool in pools} == {method}
    assert all(sum(pool["placement"].values()) >= 2 * 2**22 for pool in pools)
