"""How each MPI starts ranks, whatever batch system the driver itself runs in.

Their commands on one node are in environments/golden, for 2 and 4 ranks on 2 cores.
"""

from pathlib import Path

import pytest

import hbmcomm
from experiments.environments.mpiexec import across, asking, outside_jobs
from experiments.model.environment import MPIS
from experiments.model.mpi_settings import HBW_POLICIES, hbw_policy
from tests.starting import Start

PREFIX = Path("/opt/venv")
PROGRAM = ("python", "ranks.py")


def test_the_variables_of_a_job_around_the_driver_are_left_out() -> None:
    around = {"SLURM_NTASKS": "1", "PMI_RANK": "0", "PMIX_RANK": "0", "HYDRA_RMK": "pbs"}
    assert outside_jobs({**around, "PATH": "/bin"}) == {"PATH": "/bin"}


def placed(flavour: str, hosts: str) -> str:
    """The words of an MPI for ranks on hosts that are named by a letter each."""
    argv, _ = across(flavour, PREFIX, list(hosts), ("ctl", "br"), 2, PROGRAM, Path("/agent"))
    return " ".join(argv)


def test_ranks_are_placed_on_hosts_in_turn_by_host_and_as_listed() -> None:
    assert "--host a,a,b --map-by seq" in placed("openmpi", "aab")
    for flavour in ("mpich", "impi"):
        assert placed(flavour, "abab").endswith("-hosts a,b -ppn 1 -n 4 python ranks.py")
    assert placed("mpich", "aab").endswith(" -hosts a:2,b:1 -n 3 python ranks.py")
    by_host = "-n 2 -host a python ranks.py : -n 1 -host b python ranks.py"
    assert placed("impi", "aab").endswith(by_host)


def test_mpich_refuses_hosts_in_an_order_that_it_does_not_have() -> None:
    with pytest.raises(ValueError, match="by host or in turn, not as a b b a"):
        placed("mpich", "abba")


@pytest.mark.ranks
@pytest.mark.parametrize(
    "flavour", ["openmpi", *(pytest.param(mpi, marks=pytest.mark.rare) for mpi in MPIS[1:])]
)
def test_two_ranks_start_inside_a_batch_systems_single_task(
    mpirun: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str
) -> None:
    for name in ("JOB_ID", "JOBID"):
        monkeypatch.setenv(f"SLURM_{name}", "7")
    for name in ("NTASKS", "NNODES", "TASKS_PER_NODE"):
        monkeypatch.setenv(f"SLURM_{name}", "1")
    for name in ("NODELIST", "JOB_NODELIST"):
        monkeypatch.setenv(f"SLURM_{name}", "localhost")
    monkeypatch.setenv("SLURM_PROCID", "0")
    monkeypatch.setenv("PMI_SIZE", "1")
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from mpi4py import MPI; sys.stdout.write(f'of {MPI.COMM_WORLD.size}\\n')"
    )
    assert mpirun(program, 2, mpi=flavour).output.count("of 2") == 2


POLICY = """
import sys
from mpi4py import MPI
from experiments.machine import facts
sys.stdout.write(f"policy: {facts.memory_policy()}\\n")
"""


@pytest.mark.ranks
@pytest.mark.rare
@pytest.mark.parametrize("policy", HBW_POLICIES)
def test_intel_mpi_takes_its_policy_of_memory_or_ignores_it_without_hbm(
    mpirun: Start, tmp_path: Path, policy: str
) -> None:
    """It names the policy either way; its launcher prints -1 for the node where it has none."""
    program = tmp_path / "policy.py"
    program.write_text(POLICY)
    env = {**hbw_policy(policy), **asking("impi")}
    seen = mpirun(program, 2, mpi="impi", env=env).output
    assert f"I_MPI_HBW_POLICY={policy},{policy},{policy}" in seen
    assert seen.count("policy: ") == 2
    if not any(node.total_bytes and not node.cpus for node in hbmcomm.topology().nodes):
        assert "I_MPI_RETURN_WIN_MEM_NUMA=-1" in seen
        assert seen.count("policy: default\n") == 2


@pytest.mark.ranks
@pytest.mark.rare
def test_intel_mpi_refuses_a_policy_that_it_does_not_know(mpirun: Start, tmp_path: Path) -> None:
    program = tmp_path / "policy.py"
    program.write_text(POLICY)
    seen = mpirun(program, 2, mpi="impi", env={"I_MPI_HBW_POLICY": "fast"}, code=None)
    assert seen.code and "Unknown memory policy" in seen.output
