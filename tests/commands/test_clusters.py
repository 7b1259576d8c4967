"""Jobs of the batch system: what chooses their programs, and where their logs are."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from commands import clusters
from experiments.catalogue import spec
from experiments.cluster import jobs, sites
from experiments.cluster.jobs import Job
from experiments.cluster.sites import Site
from experiments.console import Stages
from experiments.driver.campaign_file import Request
from experiments.model.errors import ExperimentsError
from experiments.results import store
from experiments.results.store import ResultsError
from tests.stored_launches import begin


def test_the_job_of_a_resumed_campaign_repeats_what_its_user_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "sites.toml"
    tables.write_text("[knl]\n[xeon]\n")
    monkeypatch.setattr(sites, "path", lambda: tables)
    monkeypatch.setattr(jobs, "held", lambda environment: False)
    out, python = tmp_path / "out", "/site/env"
    asked = spec.restrict(spec.load("quick"), environments="slurm", blocks=1)
    begin(out, asked, site="knl", python=python)
    again = {"python": python, "site": "knl", "base": ""}
    assert clusters.resume(out, "", True, again)
    shown = capsys.readouterr().out
    assert f"./inv run --resume --python {python} --site knl --out {out}" in shown
    with pytest.raises(ResultsError, match="begun with --site 'knl'"):
        clusters.resume(out, "", True, {**again, "site": ""})


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A planned campaign's job, with results in tmp_path/out."""
    tables = tmp_path / "sites.toml"
    tables.write_text("[knl]\n")
    monkeypatch.setattr(sites, "path", lambda: tables)
    experiment = spec.restrict(spec.load("quick"), environments="slurm", blocks=1)
    planned = clusters.campaign_file.plan(experiment, Request(tmp_path / "out", site="knl"))
    return clusters.job_of(planned, tmp_path / "out", "10", [])[1]


def test_a_jobs_log_is_in_a_folder_that_nobody_else_writes_into(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm follows a link under the log's name, which others can guess."""
    out, ended = tmp_path / "out", SimpleNamespace(is_complete=True)
    modes = []

    def submit(script: str) -> str:
        modes.append(out.stat().st_mode & 0o777)
        assert f"#SBATCH --output={out}/.job-%j.log\n" in script
        return "7"

    monkeypatch.setattr(jobs, "submit", submit)
    monkeypatch.setattr(jobs, "follow", lambda *asked: ended)
    before = os.umask(0)
    try:
        clusters.run(Site(), job, out, Stages())
    finally:
        os.umask(before)
    assert modes == [0o755]
    (out / ".job-7.log").touch()
    store.refuse_existing(out)  # the job's own check: a log is no campaign
    out.chmod(0o1777)
    with pytest.raises(ExperimentsError, match=f"other users can write into {out}.*chmod go-w"):
        clusters.run(Site(), job, out, Stages())
    assert modes == [0o755]


def test_a_job_that_is_refused_leaves_no_folder(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit(script: str) -> str:
        raise ExperimentsError("sbatch does not take the job")

    monkeypatch.setattr(jobs, "submit", submit)
    with pytest.raises(ExperimentsError, match="does not take"):
        clusters.run(Site(), job, tmp_path / "out", Stages())
    assert not (tmp_path / "out").exists()
