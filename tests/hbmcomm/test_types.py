"""What an editor and mypy see of the library: the types that a user's program gets."""

import subprocess
import sys
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
from typing import Any, assert_type
from mpi4py import MPI
from numpy.typing import NDArray
import hbmcomm

with hbmcomm.Communicator(kind="regular", transport="mpi") as comm:
    assert_type(comm, hbmcomm.Communicator)
    assert_type(comm.Dup(), hbmcomm.Communicator)
    assert_type(comm.Split(1), hbmcomm.Communicator)
    assert_type(comm.Idup()[0], hbmcomm.Communicator)
    assert_type(comm.transport, str)
    assert_type(comm.kind, str)
    assert_type(comm.nodes, tuple[int, ...] | None)
    assert_type(comm.device, str | None)
    x: NDArray[Any] = comm.ones_like(comm.zeros(3))
    plan = comm.Allreduce_init(MPI.IN_PLACE, x)
    assert_type(plan, hbmcomm.Plan)
    plan()
    assert_type(comm.Iallreduce(MPI.IN_PLACE, x), MPI.Request)
    grid = comm.Create_cart([1, 1])
    assert_type(grid.coords, list[int])
    assert_type(grid.transport, str)
    assert_type(grid.Sub([True, False]).empty(3), NDArray[Any])
    assert_type(hbmcomm.topology(), hbmcomm.Topology)
    assert_type(hbmcomm.__version__, str)
"""


@pytest.fixture
def mypy(tmp_path: Path) -> Callable[[str], str]:
    def check(program: str) -> str:
        file = tmp_path / "program.py"
        file.write_text(program, encoding="utf-8")
        command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(file)]
        found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        return found.stdout + found.stderr

    return check


def test_a_program_gets_our_types(mypy: Callable[[str], str]) -> None:
    assert mypy(PROGRAM).startswith("Success")


@pytest.mark.parametrize(
    ("mistake", "error"),
    [
        ("hbmcomm.Communicator().transport = 'mpi'", "assignment"),
        ("hbmcomm.comunicator", "attr-defined"),
        ("hbmcomm.Communicator(transports='mpi')", "call-arg"),
        ("hbmcomm.Communicator().ones_like()", "call-arg"),
    ],
)
def test_a_mistake_is_found(mypy: Callable[[str], str], mistake: str, error: str) -> None:
    assert f"[{error}]" in mypy(f"import hbmcomm\n{mistake}\n")


def test_the_types_are_shipped() -> None:
    assert resources.files("hbmcomm").joinpath("py.typed").is_file()
