"""Campaigns on a real Slurm over two hosts: all MPIs, every end of a job, going on after one."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from experiments.cluster.states import NEVER
from experiments.model.environment import MPIS
from experiments.processes import executables
from experiments.provision.image import Image
from experiments.results import store
from experiments.results.result import Result
from tests.awaiting import wait_for
from tests.slurm_cluster import Cluster, begin

pytestmark = [pytest.mark.ranks, pytest.mark.alone]  # Slurm gives its jobs all cores

Done = subprocess.CompletedProcess[str]
TOO_LONG = (NEVER["PartitionConfig"], NEVER["PartitionTimeLimit"])
"""Why a partition does not run a job; which of them depends on the scheduler that looks first."""
RACE = "mca_pml_ob1_recv_frag_callback_match"
"""Where Open MPI can crash in MPI_Init under srun (open-mpi/ompi#12495)."""


def campaign(slurm: Cluster, name: str, *flags: str) -> Done:
    """A campaign run to its end; where Open MPI's race ends a launch, resumed as the page says."""
    done = ended(begin(slurm, name, *flags))
    logs = (slurm.folder / name).glob("logs/*.log")
    if done.returncode and any(RACE in log.read_text(errors="replace") for log in logs):
        return ended(slurm.begin("./inv", "run", "--resume", "--out", f"{slurm.folder}/{name}"))
    return done


def ended(process: "subprocess.Popen[str]") -> Done:
    out, errors = process.communicate(timeout=200)
    return Done(process.args, process.returncode, out, errors)


def launches(folder: Path) -> list[Result]:
    return [store.read_result(folder, name) for name in sorted(store.finished(folder))]


def job_of(slurm: Cluster, name: str) -> str:
    """The number of a campaign's job, once its first launch is finished."""
    wait_for(lambda: store.finished(slurm.folder / name), "finished launch")
    (log,) = (slurm.folder / name).glob(".job-*.log")
    return log.stem.rpartition("-")[2]


def interrupt(process: "subprocess.Popen[str]") -> None:
    """Ctrl-C for a command of the login node: the child of what enters it."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for pid in children:
        os.kill(int(pid), signal.SIGINT)


@pytest.mark.parametrize(("launcher", "mpis"), [("srun", MPIS), ("mpiexec", MPIS[:1])])
def test_ranks_measure_over_two_nodes(slurm: Cluster, launcher: str, mpis: tuple[str, ...]) -> None:
    folder = slurm.folder / f"by-{launcher}"
    done = campaign(slurm, folder.name, "--mpi", ",".join(mpis), "--launcher", launcher)
    assert (done.returncode, done.stdout.strip()) == (0, str(folder)), done.stderr
    assert "running" in done.stderr and f"[{len(mpis)}/{len(mpis)}]" in done.stderr
    finished = launches(folder)
    assert {launch.launch.mpi for launch in finished} == set(mpis)
    for launch in finished:
        assert launch.facts.datapath["hostnames"] == "2"
        assert [rank.rank for rank in launch.ranks] == [0, 1, 2, 3]
        timed = {cell.transport: bool(cell.samples) for cell in launch.cells}
        assert timed["mpi"] and not timed["direct"]
        assert launcher in launch.command


@pytest.mark.container
@pytest.mark.parametrize("launcher", [pytest.param("srun", marks=pytest.mark.rare), "mpiexec"])
def test_ranks_in_charliecloud_measure_over_two_nodes(
    slurm: Cluster, image: Image, launcher: str
) -> None:
    if executables.find("ch-run") is None:
        pytest.skip("ch-run is not installed")
    folder = slurm.folder / f"contained-by-{launcher}"
    flags = ("--env", "slurm,slurm-charliecloud", "--launcher", launcher)
    done = campaign(slurm, folder.name, *flags)
    assert done.returncode == 0, done.stderr
    by_arm = {launch.launch.arm: launch for launch in launches(folder)}
    assert by_arm.keys() == {"host", "charliecloud"}
    for launch in by_arm.values():
        assert launch.facts.datapath["hostnames"] == "2"
        assert launch.company == ("0000-charliecloud", "0000-host")  # alive together, in turns
    assert "ch-run" in by_arm["charliecloud"].command


def test_ranks_that_a_wrong_pmi_leaves_alone_fail_the_job(slurm: Cluster) -> None:
    slurm.write_site('pmi = { mpich = "none" }')
    try:
        done = campaign(slurm, "alone", "--mpi", "mpich")
    finally:
        slurm.write_site()
    assert done.returncode == 1
    assert "found 1 in COMM_WORLD: ranks that do not find each other" in done.stderr
    assert "failed with exit code 1; finished launches are kept: ./inv run --resume" in done.stderr


@pytest.mark.parametrize(
    ("partition", "message"),
    [
        ("short", f"would never start: ({'|'.join(TOO_LONG)})"),
        ("nowhere", "sbatch does not take the job: "),
    ],
)
def test_a_job_that_cannot_start_is_not_waited_for(
    slurm: Cluster, partition: str, message: str
) -> None:
    slurm.write_site(f'partition = "{partition}"')
    try:
        done = campaign(slurm, f"in-{partition}")
    finally:
        slurm.write_site()
    assert done.returncode == 1
    assert re.search(message, done.stderr), done.stderr
    assert slurm.run("squeue", "--noheader").stdout == ""


def test_slurm_takes_the_script_that_a_dry_run_prints(slurm: Cluster) -> None:
    shown = campaign(slurm, "by-hand", "--dry-run")
    assert shown.returncode == 0 and not (slurm.folder / "by-hand").exists()
    (slurm.folder / "job.sh").write_text(shown.stdout)
    done = slurm.run("sbatch", "--test-only", str(slurm.folder / "job.sh"))
    assert done.returncode == 0, done.stderr


def test_a_job_that_somebody_cancels_is_said_to_be(slurm: Cluster) -> None:
    process = begin(slurm, "cancelled", blocks=9)
    slurm.run("scancel", job_of(slurm, "cancelled"))
    done = ended(process)
    assert done.returncode == 1
    assert "was cancelled; finished launches are kept: ./inv run --resume" in done.stderr


def test_ctrl_c_cancels_the_job_and_keeps_what_finished(slurm: Cluster) -> None:
    process = begin(slurm, "interrupted", blocks=9)
    job_of(slurm, "interrupted")
    interrupt(process)
    done = ended(process)
    assert done.returncode == 130, done.stderr
    assert "was cancelled; finished launches are kept: ./inv run --resume" in done.stderr
    assert slurm.run("squeue", "--noheader").stdout == ""


@pytest.mark.rare
def test_a_campaign_goes_on_in_a_new_job_after_its_time_limit(slurm: Cluster) -> None:
    process = begin(slurm, "limited", blocks=2)
    job = job_of(slurm, "limited")
    slurm.signal("n1", "--search-root", signal.SIGSTOP)  # suspends the campaign
    slurm.run("scontrol", "update", f"JobId={job}", "EndTime=now")
    done = ended(process)
    assert done.returncode == 1
    assert f"job {job} reached its time limit; finished launches are kept" in done.stderr
    again = ended(slurm.begin("./inv", "run", "--resume", "--out", f"{slurm.folder}/limited"))
    assert again.returncode == 0, again.stderr
    assert len(launches(slurm.folder / "limited")) == 2


@pytest.mark.rare
def test_a_node_that_dies_ends_the_job_and_what_finished_is_kept(slurm: Cluster) -> None:
    """The last test of all files here: nothing runs on the cluster afterwards."""
    process = begin(slurm, "dead", blocks=9)
    job_of(slurm, "dead")
    slurm.hosts.kill("n2")
    done = ended(process)
    assert done.returncode == 1
    assert "finished launches are kept: ./inv run --resume" in done.stderr
    assert "lost a node" in done.stderr or "failed with exit code 1" in done.stderr
