"""Ranks share a device, alone and without a trace of earlier users; a file in memory stands for it.

On a real device the same programs run in an emulated machine, see tests/experiments/guests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.model.environment import MPIS

ROOT = Path(__file__).parents[4]
PROGRAMS = ROOT / "tests/experiments/guests/ranks"
MIB = 2**20


@pytest.fixture
def stand_in() -> Iterator[Path]:
    """A file of 128 MiB whose pages are memory; it has no name that could be left behind."""
    descriptor = os.memfd_create("hbmcomm-test-device")
    os.ftruncate(descriptor, 128 * MIB)
    yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    os.close(descriptor)


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", MPIS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_share_a_device_alone_and_find_it_clean(
    mpirun: Callable[..., Any], mpi: str, ranks: int, stand_in: Path
) -> None:
    found = mpirun(PROGRAMS / "dax_arena.py", ranks, str(stand_in), mpi=mpi)
    assert found.output.count("on the device") == ranks


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", MPIS)
def test_survivors_of_a_rank_learn_of_its_death_and_keep_the_device(
    mpirun: Callable[..., Any], mpi: str, stand_in: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "seen"
    folder.mkdir()
    mpirun(
        PROGRAMS / "dax_death.py", 3, str(stand_in), str(folder), mpi=mpi, code=None, survivors=True
    )
    seen = {each.name: each.read_text() for each in folder.iterdir()}
    assert set(seen) == {"rank0", "rank1"}, seen
    assert all(each.startswith("PeerError: rank 2 died") for each in seen.values()), seen


REFUSE = """
import sys
from mpi4py import MPI
sys.path.insert(0, {programs!r})
import stand_in
from hbmcomm import Communicator
from hbmcomm.errors import HbmcommError
from hbmcomm.memory.dax import devices as dax

path = {path!r}
{before}
try:
    Communicator(MPI.COMM_WORLD, device=path{more})
except (HbmcommError, ValueError) as error:
    print(f"<{{type(error).__name__}}: {{error}}>", flush=True)
"""
ONE_BLIND = """
def look(path):
    raise dax.KindUnavailable("none here")
stand_in.use(path)
if MPI.COMM_WORLD.rank == 2:
    dax.look = look
"""
ONE_REFUSED = """
def open_file(device):
    raise dax.KindUnavailable("closed")
stand_in.use(path)
if MPI.COMM_WORLD.rank == 1:
    dax.open_file = open_file
"""
SMALL = """
import os
os.truncate(path, 8 * 2**20)
stand_in.use(path)
"""
ANOTHER = """
stand_in.use(path)
if MPI.COMM_WORLD.rank == 1:
    dax.look = lambda path: dax.Device(path, "x", (0, 0), 2**26, 2**21, 0)
"""


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("more", "before", "said"),
    [
        ("", "", "<KindUnavailable: rank 0: device={path}: this is no character device"),
        (", kind='hbw'", "", "<ValueError: rank 0: device='{path}' and kind='hbw'"),
        (", nodes=[0]", "", "<ValueError: rank 0: device='{path}' and nodes=(0,)"),
        (", transport='mpi'", "", "<ValueError: rank 0: device='{path}' and transport='mpi'"),
        ("", ONE_BLIND, "<KindUnavailable: rank 2: none here>"),
        ("", ONE_REFUSED, "<KindUnavailable: rank 1: closed>"),
        ("", SMALL, "<OutOfMemory: device={path} has 8,388,608 bytes: too few for 3 ranks"),
        ("", ANOTHER, "<ArenaUnavailable: rank 1 has another device at {path}"),
    ],
)
def test_what_one_rank_cannot_have_is_the_same_error_on_every_rank(
    mpirun: Callable[..., Any], tmp_path: Path, stand_in: Path, more: str, before: str, said: str
) -> None:
    program, path = tmp_path / "refuse.py", str(stand_in)
    program.write_text(
        REFUSE.format(programs=str(PROGRAMS), path=path, more=more, before=before), "utf-8"
    )
    assert mpirun(program, 3).output.count(said.format(path=path)) == 3
