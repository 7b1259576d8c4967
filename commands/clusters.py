"""Campaigns on a cluster, from a login node: a batch script, its submission, its end."""

import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from experiments.cluster import allocation, jobs, sites, states
from experiments.cluster.mpijob import Pods, manifest
from experiments.cluster.script import Job, limit, minutes, script
from experiments.cluster.sites import Site
from experiments.console.stages import Stages
from experiments.environments.cluster import slurm
from experiments.execution import backends, campaign, campaign_file, inventory
from experiments.execution.backends import Backends
from experiments.execution.campaign_file import Campaign, Request
from experiments.execution.cleanup import reaper
from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.provision.images.image import PREFIX
from experiments.results import store


@dataclass(frozen=True)
class Place:
    """The cluster that a campaign runs on.

    Attributes:
        name: of the site; "" where sites.toml has none.
        time: limit of the job that was asked for.
        submits: whether a job is to be submitted: this process holds no allocation.
    """

    name: str = ""
    site: Site = field(default_factory=Site)
    time: str = ""
    submits: bool = False


def place(site: str, time: str) -> Place:
    """The site of that name.

    Raises:
        SiteMissing, SpecError: sites.toml has it not, or cannot be read.
    """
    return Place(*sites.load(site, sites.path()), time, allocation.held(os.environ) is None)


def start(
    experiment: Experiment, request: Request, place: Place, words: Sequence[str], dry_run: bool
) -> None:
    """Submit a new campaign and follow it to its end, or print the script that would.

    Args:
        words: the flags that the job gives to `./inv run`.
    """
    planned = campaign_file.plan(experiment, request)
    job = _job(planned, request.out, place, [*words, "--out", str(request.out)])
    if dry_run:
        _show(place, job)
        return
    store.refuse_existing(request.out)
    stages = Stages()
    with backends.ready(experiment, request, stages):
        pass  # made here, as nodes may reach neither a registry nor an engine
    _run(place, job, request.out, stages)


def mpijob(experiment: Experiment, request: Request, image: str) -> str:
    """The manifest of an MPIJob that measures a campaign, in a folder of its name.

    Args:
        image: for all pods.

    Raises:
        ExperimentsError: it has several MPIs, or too many launches.
    """
    asked = experiment.launches
    if len(asked.mpis) > 1:
        raise ExperimentsError(
            f"an MPIJob has one MPI, and {', '.join(asked.mpis)} were asked for: pass --mpi"
        )
    planned = campaign_file.make(experiment, request)
    (flavour,) = asked.mpis
    needed = slurm.of_ranks(flavour, PREFIX, crowded=False) | dict(planned.variables)
    variables = " ".join(f"{name}={value}" for name, value in sorted(needed.items()))
    seconds = 60 * minutes(campaign.seconds(planned))
    pods = Pods(request.out.name, flavour, image, PREFIX, asked.nodes, seconds, variables)
    header = planned.header(inventory.recorded(experiment, Backends()))
    return manifest(pods, header | {"machine": {}, "pods": image}, planned.launches)


def resume(out: Path, time: str, dry_run: bool) -> bool:
    """Go on in a new job with a campaign that was begun in one.

    Returns:
        False where there is nothing to submit: it needs no cluster, this process holds an
        allocation, or all is measured.
    """
    begun = campaign_file.read(out)
    on_cluster = begun.experiment.on_cluster and not allocation.held(os.environ)
    if not on_cluster or not begun.unfinished():
        return False
    there, folder = place(begun.request.site, time), out.absolute()
    job = _job(begun, folder, there, ["--resume", "--out", str(folder)])
    if dry_run:
        _show(there, job)
    else:
        _run(there, job, folder, Stages())
    return True


def _job(planned: Campaign, out: Path, place: Place, words: Sequence[str]) -> Job:
    asked = planned.experiment
    return Job(
        f"hbmcomm-{asked.name}",
        asked.launches.nodes,
        limit(place.site, place.time, campaign.seconds(planned)),
        out.with_name(f"{out.name}-%j.log"),
        ROOT,
        ("./inv", "run", *words),
    )


def _show(place: Place, job: Job) -> None:
    """The script on standard output; on standard error what it needs before it is submitted."""
    print(script(place.site, job), end="")
    if not job.log.parent.is_dir():
        print(f"make its folder first: mkdir -p {job.log.parent}", file=sys.stderr)


def _run(place: Place, job: Job, out: Path, stages: Stages) -> None:
    job.log.parent.mkdir(parents=True, exist_ok=True)
    number = jobs.submit(script(place.site, job))
    log = Path(str(job.log).replace("%j", number))
    stages.say(f"job {number} on {job.nodes} nodes, limit {job.limit}; its log is {log}")
    try:
        ended = jobs.follow(number, log, sys.stderr.write, stages.say)
    except KeyboardInterrupt:
        _clear(out)
        stages.say(f"job {number} was cancelled; {_advice(out, log)}")
        raise
    if not ended.is_complete:
        _clear(out)
        raise ExperimentsError(states.ending(number, ended, _advice(out, log)))
    print(out)


def _clear(out: Path) -> None:
    """Remove what a job that has ended did not finish; ranks on lost nodes end with it."""
    with contextlib.suppress(OSError):
        list(reaper.unfinished(out))


def _advice(out: Path, log: Path) -> str:
    if (out / "campaign.json").exists():
        return f"finished launches are kept: ./inv run --resume --out {out}"
    return f"nothing was measured yet: see {log}"
