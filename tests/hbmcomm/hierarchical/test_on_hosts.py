"""On emulated hosts with unequal ranks: every call gives what mpi4py and NumPy give.

For HBMCOMM_SECONDS, one launch after the other, each with a seed of its own. By hand:
    HBMCOMM_SECONDS=1200 .venv/bin/pytest -s tests/hbmcomm/hierarchical/test_on_hosts.py
"""

import os
import time
from pathlib import Path

import pytest

from tests.starting import MakeHosts, Start

CALLS = Path(__file__).parents[1] / "transports/ranks" / "random_calls.py"
SECONDS = float(os.environ.get("HBMCOMM_SECONDS", "1"))
SEED = int(os.environ.get("HBMCOMM_SEED", "1"))
COUNTS = (1, 2, 3)  # ranks of the hosts
FLAVOURS = ("mpich", "openmpi")
"""Intel MPI 2021.18 is no reference: its own Reduce to rank 2 crashes on such hosts."""
NUMBER = 25 if SECONDS <= 1 else 150  # calls of a launch

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(3600)]


def test_random_calls_between_unequal_hosts_give_what_mpi4py_and_numpy_give(
    hosts: MakeHosts, mpirun_on: Start
) -> None:
    began, launches, made = time.monotonic(), 0, hosts(3)
    while time.monotonic() - began < SECONDS:
        mpi, seed = FLAVOURS[launches % len(FLAVOURS)], str(SEED + launches)
        words = ("hierarchical", seed, str(NUMBER))
        found = mpirun_on(made, made.packed(*COUNTS), CALLS, *words, mpi=mpi, timeout=400)
        assert "hierarchical: alike" in found.output, f"seed {seed} under {mpi}: {found.output}"
        launches += 1
        print(f"{launches * NUMBER} calls alike, the last under {mpi}", flush=True)
