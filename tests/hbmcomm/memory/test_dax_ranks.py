"""Ranks share a device, alone and without a trace of earlier users; a file in memory replaces it.

tests/experiments/emulation/in_guest runs the same programs on the device of an emulated machine.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from tests.starting import Start, Survivors

PROGRAMS = Path(__file__).parent / "ranks"
MIB = 2**20


@pytest.fixture
def stand_in() -> Iterator[Path]:
    """A file of 128 MiB in memory; it has no name that could be left behind."""
    descriptor = os.memfd_create("hbmcomm-test-device")
    os.ftruncate(descriptor, 128 * MIB)
    yield Path(f"/proc/{os.getpid()}/fd/{descriptor}")
    os.close(descriptor)


@pytest.mark.ranks
@pytest.mark.parametrize(("ranks", "mpi"), [(1, "openmpi"), *((3, mpi) for mpi in MPIS)])
def test_ranks_share_a_device_alone_and_find_it_clean(
    mpirun: Start, mpi: str, ranks: int, stand_in: Path
) -> None:
    found = mpirun(PROGRAMS / "dax_arena.py", ranks, str(stand_in), mpi=mpi)
    assert found.output.count("on the device") == ranks


@pytest.mark.ranks
def test_survivors_of_a_rank_learn_of_its_death_and_keep_the_device(
    survivors: Survivors, stand_in: Path
) -> None:
    seen = survivors(PROGRAMS / "dax_death.py", 3, str(stand_in))
    assert set(seen) == {"rank0", "rank1"}, seen
    assert all(each.startswith("PeerError: rank 2 died") for each in seen.values()), seen


REFUSED = """
from unittest import mock
from mpi4py import MPI
from hbmcomm import Communicator
from hbmcomm.errors import HbmcommError
from hbmcomm.memory import dax_file
from tests.hbmcomm.memory.ranks import stand_in

path, rank = {path!r}, MPI.COMM_WORLD.rank

def refused(**more):
    MPI.COMM_WORLD.Barrier()
    try:
        Communicator(MPI.COMM_WORLD, device=path, **more)
    except (HbmcommError, ValueError) as error:
        print(f"<{{type(error).__name__}}: {{error}}>", flush=True)
    MPI.COMM_WORLD.Barrier()

def on(number, name, value):
    value = value if rank == number else getattr(dax_file, name)
    return mock.patch.object(dax_file, name, value)

refused()
stand_in.use(path)
refused(kind="hbw")
refused(nodes=[0])
refused(transport="mpi")
with on(2, "inspect", mock.Mock(side_effect=dax_file.KindUnavailable("none here"))):
    refused()
with on(1, "inspect", lambda path: dax_file.DaxFile(path, "x", (0, 0), 2**26, 2**21, 0)):
    refused()
"""


@pytest.mark.ranks
def test_what_one_rank_cannot_have_is_the_same_error_on_every_rank(
    mpirun: Start, tmp_path: Path, stand_in: Path
) -> None:
    program, path = tmp_path / "refused.py", str(stand_in)
    program.write_text(REFUSED.format(path=path), "utf-8")
    output = mpirun(program, 3).output
    for printed in (
        f"<KindUnavailable: rank 0: device={path}: this is no character device",
        f"<ValueError: rank 0: device='{path}' and kind='hbw'",
        f"<ValueError: rank 0: device='{path}' and nodes=(0,)",
        f"<ValueError: rank 0: device='{path}' and transport='mpi'",
        "<KindUnavailable: rank 2: none here>",
        f"<ArenaUnavailable: rank 1 has another device at {path}",
    ):
        assert output.count(printed) == 3, printed
