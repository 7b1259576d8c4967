"""A job's script, as a user reads it."""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.cluster.script import Job, limit, script
from experiments.cluster.sites import Site
from experiments.model.errors import ExperimentsError

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


def test_a_shell_takes_it() -> None:
    done = subprocess.run(["bash", "-n"], input=script(SITE, JOB), text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("asked", "site", "wanted"), [("10", "20", "10"), ("", "20", "20"), ("", "", "35")]
)
def test_the_limit_is_the_users_or_the_sites_or_the_forecasts(
    asked: str, site: str, wanted: str
) -> None:
    assert limit(Site(time=site), asked, 20 * 60.0) == wanted


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "x\n#SBATCH --wrap=id\ntouch y"},
        {"log": Path("/scratch/a\nid\n/%j.log")},
    ],
)
def test_no_name_becomes_a_line_of_the_script(changed: dict[str, Any]) -> None:
    with pytest.raises(ExperimentsError, match=r"cannot be a line of a batch script"):
        script(SITE, replace(JOB, **changed))


def test_a_path_with_spaces_stays_one_option() -> None:
    text = script(SITE, replace(JOB, log=Path("/scratch/my results/%j.log")))
    assert "#SBATCH '--output=/scratch/my results/%j.log'\n" in text
