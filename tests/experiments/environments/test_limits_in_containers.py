"""A container's memory limit is an error of ours on the rank that meets it, and kills nobody.

On this machine's version of cgroups; a guest's is version 2, see tests/experiments/emulation.
"""

from typing import Any

import docker
import pytest

from experiments.environments import profiles
from experiments.environments.mpiexec import mpiexec
from experiments.provision import passthrough, seccomp
from experiments.provision.image import PREFIX, Image

pytestmark = [pytest.mark.container, pytest.mark.ranks]

FILL = """
import hbmcomm
from mpi4py import MPI

def fill(empty):
    "Ask for more and more, in ever smaller blocks, until there is nothing left."
    held, said = [], ""
    for nbytes in (300 << 20, 30 << 20, 2 << 20, 1 << 16):
        try:
            while True:
                held.append(empty(nbytes, "u1"))
        except hbmcomm.OutOfMemory as error:
            said = said or str(error)
    return said

with hbmcomm.Communicator(MPI.COMM_WORLD, kind="hbw", transport="direct") as comm:
    for empty in (lambda *asked: hbmcomm.empty(*asked, kind="hbw"), comm.empty):
        said = fill(empty)
        comm.Barrier()
        print(f"<{said}>", flush=True)
"""
RANKS = 3


def test_ranks_that_fill_a_container_to_its_limit_live_to_tell(
    engine: docker.DockerClient, image: Image
) -> None:
    argv, variables = mpiexec("openmpi", PREFIX, RANKS, 2, ["python", "-c", FILL])
    options = profiles.options("tuned", passthrough.machine(), RANKS)
    options["security_opt"] = ["no-new-privileges", f"seccomp={seccomp.text()}"]
    options["environment"] = variables | {"HOME": "/tmp", "MEMKIND_HBW_NODES": "0"}
    created: Any = engine.containers.create(image.id, argv, mem_limit="400m", **options)
    try:
        created.start()
        code = created.wait(timeout=120)["StatusCode"]
        lines = created.logs().decode()
        created.reload()
        assert (code, created.attrs["State"]["OOMKilled"]) == (0, False), lines
        assert lines.count("<hbw: asked for 300 MiB") == 2 * RANKS, lines
        assert lines.count("the memory limit of this cgroup leaves") == 2 * RANKS, lines
        assert lines.count("docker: --memory") == 2 * RANKS
    finally:
        created.remove(force=True)
