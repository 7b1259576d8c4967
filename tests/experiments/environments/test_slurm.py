"""Golden text of every command in an allocation, and of a container what it changes."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.catalogue import spec
from experiments.cluster.sites import PMI
from experiments.environments import runtime
from experiments.environments.process import Process
from experiments.environments.slurm import Slurm
from experiments.jobs.execute import execute
from experiments.model.environment import CONTAINERS, LAUNCHERS, MPIS, EnvironmentId
from experiments.schedule import blocks
from tests import launched
from tests.experiments.environments.golden_text import delta, paragraphs

GOLDEN = Path(__file__).parent / "golden_slurm"
FOLDER = Path("/scratch/results/quick/incoming/0000-host")
LAUNCH = replace(launched.LAUNCH, arm="golden", ranks=4)


def command(mpi: str, launcher: str = "srun", container: str = "", cores: int = 64) -> Process:
    contained = runtime.of(EnvironmentId(f"slurm-{container}" if container else "slurm")).contained
    there = Slurm(
        *(Path("/home/me/.mpi") / mpi, 2, cores, launcher, PMI[mpi]),
        contained and contained(Path("/scratch") / mpi, Path("/opt/hbmcomm")),
        {"MEMKIND_HBW_NODES": "1"},
    )
    return there.command(replace(LAUNCH, mpi=mpi), FOLDER)


def lines(launcher: str, container: str = "") -> str:
    return paragraphs(command(mpi, launcher, container).shell() for mpi in MPIS)


def test_commands_are_those_of_the_golden_files() -> None:
    """As many ranks on each node; a container is between the launcher and the harness."""
    texts = {f"{launcher}.txt": lines(launcher) for launcher in LAUNCHERS}
    for container in CONTAINERS:
        texts[f"{container}.diff"] = delta(texts["srun.txt"], lines("srun", container))
    assert {path.name for path in GOLDEN.iterdir()} == texts.keys()
    for name, text in texts.items():
        assert text == (GOLDEN / name).read_text(), name


def test_an_mpiexec_starts_containers_as_well() -> None:
    words = command("mpich", "mpiexec", "charliecloud").argv
    assert words[0] == "/home/me/.mpi/mpich/bin/mpiexec"
    assert words.index("ch-run") < words.index("/opt/hbmcomm/bin/python")


def test_ranks_yield_where_a_node_has_fewer_cores() -> None:
    for mpi in MPIS:
        free, crowded = command(mpi, cores=2).environment, command(mpi, cores=1).environment
        assert len(crowded.keys() - free.keys()) == 1, mpi


def test_ranks_in_an_allocation_know_of_it_and_other_ranks_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLURM_JOB_ID", "PMI_RANK", "PBS_NODEFILE"):
        monkeypatch.setenv(name, "of a job")
    seen = {}
    for in_job in (False, True):
        execute(Process(("env",), in_job=in_job), tmp_path / "log", None, lambda: None)
        lines = (tmp_path / "log").read_text().splitlines()
        seen[in_job] = {line.partition("=")[0] for line in lines if line.endswith("of a job")}
    assert seen == {False: set(), True: {"SLURM_JOB_ID", "PBS_NODEFILE"}}
    assert os.environ["PMI_RANK"]


def test_a_cluster_has_the_arms_of_one_machine() -> None:
    where = "slurm,slurm-charliecloud"
    asked = spec.restrict(
        spec.load("quick"), environments=where, mpis="openmpi", ranks="4", nodes=2
    )
    arms = {launch.arm: launch.environment for launch in blocks.schedule(asked, 1)[0].launches}
    nodes = EnvironmentId("slurm")
    charliecloud = EnvironmentId("slurm-charliecloud")
    assert arms == {"host": nodes, "host-again": nodes, "charliecloud": charliecloud}
