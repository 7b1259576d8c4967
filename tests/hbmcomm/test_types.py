"""What an editor and mypy see of the library: the types that a user's program gets."""

import os
import re
import subprocess
import sys
from importlib import resources
from pathlib import Path

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
    assert_type(comm.share(x), hbmcomm.SharedArray)
    assert_type(comm.attach(comm.share(x)), NDArray[Any])
    assert_type(comm.flags(x), hbmcomm.Flags)
    assert_type(comm.arena_ranks, tuple[int, ...])
    assert_type(comm.Iallreduce(MPI.IN_PLACE, x), MPI.Request)
    grid = comm.Create_cart([1, 1])
    assert_type(grid.coords, list[int])
    assert_type(grid.transport, str)
    assert_type(grid.Sub([True, False]).empty(3), NDArray[Any])
    assert_type(hbmcomm.topology(), hbmcomm.Topology)
    assert_type(hbmcomm.__version__, str)
"""


MISTAKES = {
    "hbmcomm.Communicator().transport = 'mpi'": "assignment",
    "hbmcomm.comunicator": "attr-defined",
    "hbmcomm.Communicator(transports='mpi')": "call-arg",
    "hbmcomm.Communicator().ones_like()": "call-arg",
}
"""Lines that mypy must refuse, each with the code of its error."""


def test_a_program_gets_our_types_and_every_mistake_is_found(tmp_path: Path) -> None:
    """One run of mypy, which takes longest to begin."""
    (tmp_path / "right.py").write_text(PROGRAM, encoding="utf-8")
    mistaken = tmp_path / "mistaken.py"
    mistaken.write_text("\n".join(["import hbmcomm", *MISTAKES]), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file="]
    done = subprocess.run(
        [*command, "right.py", mistaken.name],
        cwd=tmp_path,
        env=os.environ | {"MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    errors = re.findall(r"^(.*\.py):(\d+): error: .* \[([a-z-]+)\]$", done.stdout, re.MULTILINE)
    assert errors == [
        (mistaken.name, str(line), code) for line, code in enumerate(MISTAKES.values(), 2)
    ], done.stdout + done.stderr


def test_the_types_are_shipped() -> None:
    assert resources.files("hbmcomm").joinpath("py.typed").is_file()
