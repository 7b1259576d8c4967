"""Ranks share a device, alone and without a trace of earlier users; a file in memory stands for it.

On a real device the same programs run in an emulated machine, see tests/experiments/emulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from experiments.environments.mpiexec import FLAVOURS

ROOT = Path(__file__).parents[3]
PROGRAMS = ROOT / "tests/experiments/emulated/ranks"
MIB = 2**20


@pytest.fixture
def stand_in() -> Iterator[Path]:
    """A file of 128 MiB whose pages are memory."""
    path = Path("/dev/shm/hbmcomm-test-device")
    with path.open("wb") as file:
        file.truncate(128 * MIB)
    yield path
    path.unlink()


@pytest.mark.ranks
@pytest.mark.parametrize("mpi", FLAVOURS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_share_a_device_alone_and_find_it_clean(
    mpirun: Callable[..., Any], mpi: str, ranks: int, stand_in: Path
) -> None:
    found = mpirun(PROGRAMS / "dax_arena.py", ranks, str(stand_in), mpi=mpi)
    assert found.output.count("on the device") == ranks
