"""Campaigns on a cluster, from a login node: a batch script, its submission, its end."""

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from experiments.cluster import jobs, sites, states
from experiments.cluster.sites import Site
from experiments.console import Stages, print_text
from experiments.driver import backends, campaign, campaign_file, reaper
from experiments.driver.campaign_file import Campaign, Request
from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.processes import folder_lock, ownership
from experiments.results import store


def start(
    experiment: Experiment, request: Request, time: str, words: Sequence[str], dry_run: bool
) -> None:
    """Submit a new campaign and follow it to its end, or print the script that would.

    Args:
        time: limit of the job that was asked for.
        words: the flags that the job gives to `./inv run`.
    """
    planned = campaign_file.plan(experiment, request)
    site, job = job_of(planned, request.out, time, words)
    if dry_run:
        _show(site, job)
        return
    store.refuse_existing(request.out)
    stages = Stages()
    with backends.ready(experiment, request, stages):
        pass  # made here, as nodes may reach neither a registry nor an engine
    run(site, job, request.out, stages)


def resume(out: Path, time: str, dry_run: bool, again: Mapping[str, str]) -> bool:
    """Go on in a new job with a campaign that was begun in one.

    Args:
        again: as campaign_file.read() takes it.

    Returns:
        False where there is nothing to submit: it needs no cluster, this process holds an
        allocation, or all is measured.
    """
    begun = campaign_file.read(out, **again)
    on_cluster = begun.experiment.on_cluster and not jobs.held(os.environ)
    if not on_cluster or not begun.unfinished():
        return False
    folder = out.absolute()
    confirmed = [word for flag, text in again.items() if text for word in (f"--{flag}", text)]
    site, job = job_of(begun, folder, time, ["--resume", *confirmed])
    if dry_run:
        _show(site, job)
    else:
        run(site, job, folder, Stages())
    return True


def job_of(planned: Campaign, out: Path, time: str, words: Sequence[str]) -> tuple[Site, jobs.Job]:
    """The job that measures a campaign, and its site."""
    asked, site = planned.experiment, sites.load(planned.request.site, sites.path())[1]
    return site, jobs.Job(
        f"hbmcomm-{asked.name}",
        asked.launches.nodes,
        jobs.limit(site, time, campaign.seconds(planned)),
        out / ".job-%j.log",  # slurmd opens it, and elsewhere others could have put a link
        ROOT,
        ("./inv", "run", *words, "--out", str(out)),
    )


def _show(site: Site, job: jobs.Job) -> None:
    """The script on standard output; on standard error what it needs before it is submitted."""
    print_text(jobs.script(site, job), end="")
    out = job.log.parent
    if not out.is_dir():
        print_text(
            f"make its folder first: mkdir -p -m {folder_lock.MODE:o} {out}", file=sys.stderr
        )


def run(site: Site, job: jobs.Job, out: Path, stages: Stages) -> None:
    is_new = not out.exists()
    out.mkdir(folder_lock.MODE, parents=True, exist_ok=True)
    ownership.refuse_others(out)
    try:
        number = jobs.submit(jobs.script(site, job))
    except ExperimentsError:
        if is_new:
            out.rmdir()
        raise
    log = Path(str(job.log).replace("%j", number))
    stages.say(f"job {number} on {job.nodes} nodes, limit {job.limit}; its log is {log}")
    show = partial(print_text, end="", file=sys.stderr)
    try:
        ended = jobs.follow(number, log, show, stages.say)
    except KeyboardInterrupt:
        _clear(out)
        stages.say(f"job {number} was cancelled; {_advice(out, log)}")
        raise
    if not ended.is_complete:
        _clear(out)
        raise ExperimentsError(states.ending(number, ended, _advice(out, log)))
    print_text(out)


def _clear(out: Path) -> None:
    """Remove what a job that has ended did not finish; ranks on lost nodes end with it."""
    with contextlib.suppress(OSError):
        list(reaper.unfinished(out))


def _advice(out: Path, log: Path) -> str:
    if (out / "campaign.json").exists():
        return f"finished launches are kept: ./inv run --resume --out {out}"
    return f"nothing was measured yet: see {log}"
