"""A job's script, as a user reads it; the allocation that a process runs in."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.cluster import jobs
from experiments.cluster.jobs import Job, limit, script
from experiments.cluster.sites import Site
from experiments.model.environment import EnvironmentId
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Launches
from tests.refusals import refusal

JOB = Job(
    "hbmcomm-quick",
    2,
    "30",
    Path("/scratch/me/results/quick-%j.log"),
    Path("/home/me/h c"),
    ("./inv", "run", "--out", "/scratch/me/results/quick"),
)
SITE = Site(
    partition="hbm",
    account="abc123",
    constraint="flat,quadrant",
    options=("--reservation=night",),
    prepare=("module load gcc", "export UCX_TLS=rc,sm"),
)


def test_the_script_says_all_that_the_site_wants_to_be_told() -> None:
    assert (
        script(SITE, JOB)
        == """\
#!/bin/bash
#SBATCH --job-name=hbmcomm-quick
#SBATCH --nodes=2
#SBATCH --time=30
#SBATCH --output=/scratch/me/results/quick-%j.log
#SBATCH --partition=hbm
#SBATCH --account=abc123
#SBATCH --constraint=flat,quadrant
#SBATCH --no-requeue
#SBATCH --exclusive
#SBATCH --mem=0
#SBATCH --reservation=night

module load gcc
export UCX_TLS=rc,sm
cd '/home/me/h c'
exec ./inv run --out /scratch/me/results/quick
"""
    )


def test_a_site_may_share_its_nodes() -> None:
    assert "exclusive" not in script(Site(exclusive=False), JOB)


def test_the_limit_is_the_users_or_the_sites_or_the_forecasts() -> None:
    for asked, site, wanted in (("10", "20", "10"), ("", "20", "20"), ("", "", "35")):
        assert limit(Site(time=site), asked, 20 * 60.0) == wanted


def test_no_name_becomes_a_line_of_the_script() -> None:
    named = replace(JOB, name="x\n#SBATCH --wrap=id\ntouch y")
    logged = replace(JOB, log=Path("/scratch/a\nid\n/%j.log"))
    for job in (named, logged):
        answer = refusal(ExperimentsError, script, SITE, job)
        assert "cannot be a line of a batch script" in answer, job


def test_a_path_with_spaces_stays_one_option() -> None:
    text = script(SITE, replace(JOB, log=Path("/scratch/my results/%j.log")))
    assert "#SBATCH '--output=/scratch/my results/%j.log'\n" in text


OF_TWO = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2"}


def test_a_job_is_known_by_its_variables() -> None:
    for variables, wanted in (
        (OF_TWO, ("Slurm", "7")),
        ({"PBS_JOBID": "7.pbs"}, ("PBS", "7.pbs")),
        ({"LSB_JOBID": "7"}, ("LSF", "7")),
        ({"FLUX_ENCLOSING_ID": "f7"}, ("Flux", "f7")),
        ({"PATH": "/bin"}, None),
    ):
        assert jobs.held(variables) == wanted


def nodes(count: int, **more: Any) -> Launches:
    """A campaign on so many nodes of an allocation."""
    return Launches(environments=(EnvironmentId("slurm"),), ranks=(count,), nodes=count, **more)


def test_a_campaign_that_does_not_fit_is_refused() -> None:
    for variables, asked, message in (
        ({}, nodes(2), "runs in no allocation"),
        (OF_TWO, nodes(4), "job 7 has 2: ask for as many with"),
        ({"PBS_JOBID": "7"}, Launches(), "no srun: pass --launcher mpiexec"),
    ):
        assert message in refusal(ExperimentsError, jobs.check_allocation, variables, asked)
    jobs.check_allocation(OF_TWO, nodes(2))
    jobs.check_allocation({"PBS_JOBID": "7"}, nodes(2, launcher="mpiexec"))
