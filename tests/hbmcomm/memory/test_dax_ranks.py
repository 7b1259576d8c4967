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
    done = mpirun(PROGRAMS / "dax_arena.py", ranks, str(stand_in), mpi=mpi)
    assert done.output.count("on the device") == ranks


@pytest.mark.ranks
def test_survivors_of_a_rank_learn_of_its_death_and_keep_the_device(
    survivors: Survivors, stand_in: Path
) -> None:
    seen = survivors(PROGRAMS / "dax_death.py", 3, str(stand_in))
    assert set(seen) == {"rank0", "rank1"}, seen
    assert all(text.startswith("PeerError: rank 2 died") for text in seen.values()), seen


REFUSED = """
from unittest import mock
from mpi4py import MPI
import hbmcomm
from hbmcomm.memory import dax_file
from tests.hbmcomm.memory.ranks import stand_in
from tests.hbmcomm.ranks.refusal import refused

path, rank = {path!r}, MPI.COMM_WORLD.rank
stand_in.use(path)
another = dax_file.DaxFile(path, "x", (0, 0), 2**26, 2**21, 0)
none = hbmcomm.KindUnavailable("none here")
for inspect, words in (
    (mock.Mock(side_effect=none), "rank 2: none here"),
    (mock.Mock(return_value=another), f"rank 2 has another device at {{path}}"),
):
    with refused(hbmcomm.HbmcommError, words):
        with mock.patch.object(dax_file, "inspect", inspect if rank == 2 else dax_file.inspect):
            hbmcomm.Communicator(MPI.COMM_WORLD, device=path)
"""


@pytest.mark.ranks
def test_what_one_rank_cannot_have_is_the_same_error_on_every_rank(
    mpirun: Start, tmp_path: Path, stand_in: Path
) -> None:
    program = tmp_path / "refused.py"
    program.write_text(REFUSED.format(path=str(stand_in)), "utf-8")
    mpirun(program, 3)
