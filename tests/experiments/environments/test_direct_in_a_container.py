"""Transport direct in a real container: ranks share memory there as on the host, bound or not."""

import json
import os
from dataclasses import replace
from pathlib import Path

import docker
import pytest

from experiments.environments.docker import Docker
from experiments.execute import execute
from experiments.provision import image as image_provision
from experiments.provision import passthrough
from experiments.provision.image import Image
from experiments.schedule import HARNESS, Cell, Launch
from experiments.spec import OPERATIONS, Measurement

pytestmark = [pytest.mark.container, pytest.mark.ranks]

LAUNCH = Launch(
    experiment="test",
    block=0,
    arm="docker-tuned-one",
    environment="docker",
    profile="tuned",
    layout="one",
    program=HARNESS,
    mpi="openmpi",
    ranks=2,
    binding="packed",
    dtype="float32",
    measurement=Measurement(time_cap=0.01, min_iterations=6, max_iterations=20),
    cells=tuple(
        Cell(operation, "direct", kind, "local", size)
        for operation in OPERATIONS
        for kind in ("regular", "hbw")
        for size in (4, 100_000, 2**22)
    ),
)


@pytest.mark.parametrize(
    ("allowed", "kinds"),
    [(["SYS_NICE"], {"regular", "hbw"}), ([], {"regular"})],
    ids=["as we start it", "where binding is refused"],
)
def test_direct_needs_nothing_that_a_container_refuses(
    engine: docker.DockerClient, image: Image, tmp_path: Path, allowed: list[str], kinds: set[str]
) -> None:
    launch = replace(LAUNCH, cells=tuple(cell for cell in LAUNCH.cells if cell.kind in kinds))
    (tmp_path / "launch.json").write_text(json.dumps(launch.to_dict()))
    if os.getuid() == 0:
        os.chown(tmp_path, *passthrough.owner())
    environment = Docker(
        *("openmpi", image.id, image_provision.PREFIX, passthrough.cores()),
        *(passthrough.machine(), "test-direct", {"MEMKIND_HBW_NODES": "0"}),
    )
    command = environment.command(launch, tmp_path)
    command = replace(command, options={**command.options, "cap_add": allowed})
    log = tmp_path.parent / f"{tmp_path.name}.log"
    code = execute(command, log, engine, lambda: None)
    assert code == 0, log.read_text()
    result = json.loads((tmp_path / "result.json").read_text())
    assert not [cell for cell in result["cells"] if "skipped" in cell]
    assert result["environment"]["datapath"]["memfd"] == "works"
    pools = [pool for rank in result["ranks"] for pool in rank["pools"]]
    assert {(pool["kind"], pool["source"]) for pool in pools} == {(kind, "arena") for kind in kinds}
    for pool in pools:
        assert sum(pool["placement"].values()) >= 2 * 2**22
        assert (pool["placement_method"] == "numa_maps") == (not allowed)
