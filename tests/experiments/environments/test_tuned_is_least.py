"""The tuned profile is the least: take one addition away, and what needs it is lost."""

from collections.abc import Callable, Iterable
from typing import Any

import docker
import pytest

from experiments.environments import profiles
from experiments.environments.mpiexec import mpiexec
from experiments.provision import passthrough, seccomp
from experiments.provision.image import PREFIX, Image

pytestmark = [pytest.mark.container, pytest.mark.ranks]

SINGLE_COPY = """
import numpy
from mpi4py import MPI
comm, data = MPI.COMM_WORLD, numpy.ones(1 << 20)
comm.Send(data, 1) if comm.rank == 0 else comm.Recv(data, 0)
"""
ARENA = """
import hbmcomm
from hbmcomm.memory import kernel
from mpi4py import MPI
with hbmcomm.Communicator(MPI.COMM_WORLD, kind="hbw", transport="direct") as comm:
    print(*kernel.policy_of(comm.empty(1 << 20).ctypes.data))
"""
ARRAY = """
import hbmcomm
from hbmcomm.memory.arrays import source
print(source(hbmcomm.empty(1 << 20, kind="hbw")))
"""
METHOD = """
from hbmcomm.memory.placement import placement_method
print(placement_method())
"""

Run = Callable[[str, int, Iterable[str]], str]


@pytest.fixture(scope="module")
def tuned(engine: docker.DockerClient, image: Image) -> Run:
    """tuned(program, ranks, without): what it says in the tuned profile without some calls."""

    def run(program: str, ranks: int, without: Iterable[str]) -> str:
        argv, variables = mpiexec("openmpi", PREFIX, ranks, 2, ["python", "-c", program])
        options = profiles.options("tuned", passthrough.machine(), ranks)
        options["security_opt"] = ["no-new-privileges", f"seccomp={seccomp.text(without)}"]
        options["environment"] = variables | {
            "HOME": "/tmp",
            "MEMKIND_HBW_NODES": "0",
            "OMPI_MCA_smsc_base_verbose": "20",
        }
        created: Any = engine.containers.create(image.id, argv, **options)
        try:
            created.start()
            created.wait(timeout=60)
            return str(created.logs().decode())
        finally:
            created.remove(force=True)

    return run


def single_copy(text: str) -> bool:
    """Open MPI has a component for single copies and found nothing that hinders it."""
    return "selected shared-memory single-copy component: cma" in text and "PTRACE" not in text


NEEDS: dict[str, tuple[str, int, Callable[[str], bool]]] = {
    "mbind": (ARENA, 2, lambda text: text.count("bind (0,)") == 2),
    "get_mempolicy": (ARRAY, 1, lambda text: "memkind" in text.splitlines()),
    "move_pages": (METHOD, 1, lambda text: "move_pages" in text.splitlines()),
    "kcmp": (SINGLE_COPY, 2, single_copy),
}
"""For each addition: a program that needs it, its ranks, and how it shows in the output."""


def test_every_addition_has_a_need() -> None:
    assert NEEDS.keys() == seccomp.additions().keys()


@pytest.fixture(scope="module")
def whole(tuned: Run) -> str:
    """What all programs, one after the other, say with every addition."""
    return tuned("".join((ARENA, ARRAY, METHOD, SINGLE_COPY)), 2, ())


@pytest.mark.parametrize("call", NEEDS)
def test_without_an_addition_something_is_lost(tuned: Run, whole: str, call: str) -> None:
    program, ranks, met = NEEDS[call]
    assert met(whole), whole
    less = tuned(program, ranks, (call,))
    assert not met(less), less
