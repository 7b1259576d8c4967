"""How each MPI starts ranks, whatever batch system the driver itself runs in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.environments.mpi.mpiexec import across, mpiexec, outside_jobs
from experiments.model.environment import MPIS

PREFIX = Path("/opt/venv")
PROGRAM = ("python", "ranks.py")


def command(
    flavour: str, ranks: int = 2, cores: int = 2, contained: bool = False
) -> tuple[str, dict[str, str]]:
    argv, variables = mpiexec(flavour, PREFIX, ranks, cores, PROGRAM, contained)
    return " ".join(argv), variables


@pytest.mark.parametrize("flavour", MPIS)
def test_an_mpi_is_started_from_its_own_environment(flavour: str) -> None:
    line, variables = command(flavour)
    assert line.startswith("/opt/venv/bin/mpiexec -n 2 ")
    assert line.endswith(" python ranks.py")
    assert variables["PATH"].startswith("/opt/venv/bin:")


def test_no_mpi_binds_ranks() -> None:
    assert "--bind-to none" in command("openmpi")[0]
    assert "-bind-to none" in command("mpich")[0]
    assert command("impi")[1]["I_MPI_PIN"] == "0"


def test_more_ranks_than_cores_yield_while_they_wait() -> None:
    crowded = command("openmpi", ranks=4)[0]
    assert "--mca mpi_yield_when_idle 1" in crowded
    assert "--mca mpi_yield_when_idle 0" in command("openmpi", ranks=2)[0]
    assert command("mpich", ranks=4)[1]["MPIR_CVAR_ENABLE_HEAVY_YIELD"] == "1"
    assert "MPIR_CVAR_ENABLE_HEAVY_YIELD" not in command("mpich", ranks=2)[1]
    assert command("impi", ranks=4)[1]["I_MPI_WAIT_MODE"] == "1"
    assert "I_MPI_WAIT_MODE" not in command("impi", ranks=2)[1]


def test_a_contained_mpich_leaves_the_memory_of_other_processes_alone() -> None:
    assert command("mpich", contained=True)[1]["MPIR_CVAR_CH4_CMA_ENABLE"] == "0"
    assert "MPIR_CVAR_CH4_CMA_ENABLE" not in command("mpich")[1]


def test_cores_with_two_hardware_threads_take_two_ranks() -> None:
    assert "--oversubscribe" in command("openmpi", ranks=2)[0]


def test_the_variables_of_a_job_around_the_driver_are_left_out() -> None:
    around = {"SLURM_NTASKS": "1", "PMI_RANK": "0", "PMIX_RANK": "0", "PATH": "/bin"}
    assert outside_jobs(around) == {"PATH": "/bin"}


def test_no_batch_systems_launcher_is_asked_to_start_ranks() -> None:
    assert "-launcher fork" in command("mpich")[0]
    assert command("impi")[1]["I_MPI_HYDRA_BOOTSTRAP"] == "fork"
    assert outside_jobs({"HYDRA_BOOTSTRAP": "slurm", "HYDRA_RMK": "pbs"}) == {}


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
@pytest.mark.parametrize("flavour", MPIS)
def test_two_ranks_start_inside_a_batch_systems_single_task(
    mpirun: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flavour: str
) -> None:
    for name, value in {
        "SLURM_JOB_ID": "7",
        "SLURM_JOBID": "7",
        "SLURM_NTASKS": "1",
        "SLURM_NNODES": "1",
        "SLURM_NODELIST": "localhost",
        "SLURM_JOB_NODELIST": "localhost",
        "SLURM_TASKS_PER_NODE": "1",
        "SLURM_PROCID": "0",
        "PMI_SIZE": "1",
    }.items():
        monkeypatch.setenv(name, value)
    program = tmp_path / "program.py"
    program.write_text(
        "import sys; from mpi4py import MPI; sys.stdout.write(f'of {MPI.COMM_WORLD.size}\\n')"
    )
    assert mpirun(program, 2, mpi=flavour).output.count("of 2") == 2
