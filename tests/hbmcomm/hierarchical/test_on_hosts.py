"""On emulated hosts: every call gives what mpi4py and NumPy give, and what links carry.

For HBMCOMM_SECONDS, one launch after the other, each with a seed of its own. By hand:
    HBMCOMM_SECONDS=1200 .venv/bin/pytest -s tests/hbmcomm/hierarchical/test_on_hosts.py
"""

import os
import time
from pathlib import Path

import pytest

from tests.hbmcomm.hierarchical.test_hosts import WITHOUT
from tests.starting import MakeHosts, Start

RANKS = Path(__file__).parent / "ranks"
PROGRAMS = Path(__file__).parents[1] / "transports/ranks/random_programs.py"
SECONDS = float(os.environ.get("HBMCOMM_SECONDS", "1"))
SEED = int(os.environ.get("HBMCOMM_SEED", "1"))
COUNTS = (1, 2, 3)  # ranks of the hosts
FLAVOURS = ("mpich", "openmpi")
"""Intel MPI 2021.18 is no reference: its own Reduce to rank 2 crashes on such hosts."""
EACH = 4 if SECONDS <= 1 else 60  # seconds of a launch
MIB = 2**20
HEADERS = 1.04
"""Ethernet, IP and TCP, of packets up to 64 KiB as they pass between namespaces, and of replies."""

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3600)]


def test_random_programs_between_unequal_hosts_are_right(
    hosts: MakeHosts, mpirun_on: Start, tmp_path: Path
) -> None:
    began, launches, made = time.monotonic(), 0, hosts(3)
    while time.monotonic() - began < SECONDS:
        mpi, seed = FLAVOURS[launches % len(FLAVOURS)], str(SEED + launches)
        words = ("hierarchical", str(EACH), seed, str(tmp_path))
        places, how = made.packed(*COUNTS), {"mpi": mpi, "timeout": 400, "env": WITHOUT}
        done = mpirun_on(made, places, PROGRAMS, *words, **how)
        assert "calls right on 6 ranks" in done.output, f"seed {seed} under {mpi}: {done.output}"
        launches += 1
        print(f"{launches} launches right, the last under {mpi}", flush=True)


@pytest.mark.parametrize(("mpi", "packed"), [("openmpi", True), ("mpich", False)])
def test_each_link_carries_what_the_formula_says_however_ranks_are_placed(
    hosts: MakeHosts, mpirun_on: Start, mpi: str, packed: bool
) -> None:
    made = hosts(4)
    places = made.packed(2) if packed else made.in_turn(8)
    done = mpirun_on(made, places, RANKS / "carried.py", str(MIB), mpi=mpi)
    (line,) = [line for line in done.output.splitlines() if line.startswith("carried ")]
    least, most = (float(nbytes) / (2 * 3 / 4 * MIB) for nbytes in line.split()[1:])
    assert 1.0 < least <= most < HEADERS, done
