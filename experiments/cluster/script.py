"""A batch script for Slurm: text that a user can read, change and submit. Pure."""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.cluster.sites import Site
from experiments.model.errors import ExperimentsError

SPARE = 1.5
"""Limit of a job over its forecast, which knows nothing of how well an MPI does between nodes."""
START = 5  # minutes more: the file systems of clusters are slow to start Python


@dataclass(frozen=True)
class Job:
    """What one job asks of the batch system, beside what its site always asks.

    Attributes:
        limit: as sbatch takes it.
        log: file for its output, which may hold %j, the job's number.
        folder: where the command runs.
    """

    name: str
    nodes: int
    limit: str
    log: Path
    folder: Path
    command: Sequence[str]


def limit(site: Site, asked: str, seconds: float) -> str:
    """The limit of a job: what was asked for, else the site's, else from a forecast.

    Args:
        asked: "" where nothing was.
        seconds: that the campaign takes.
    """
    return asked or site.time or str(minutes(seconds))


def minutes(seconds: float) -> int:
    """The limit of a job by a forecast."""
    return START + math.ceil(SPARE * seconds / 60)


def script(site: Site, job: Job) -> str:
    """The script that runs a job's command on nodes of a site.

    Raises:
        ExperimentsError: a name or a path would be more than one line.
    """
    given = {
        "job-name": job.name,
        "nodes": job.nodes,
        "time": job.limit,
        "output": job.log,
        "partition": site.partition,
        "account": site.account,
        "constraint": site.constraint,
        "qos": site.qos,
    }
    options = [f"--{name}={value}" for name, value in given.items() if value]
    options += ["--no-requeue"]  # the campaign is resumed instead
    options += ["--exclusive", "--mem=0"] if site.exclusive else []
    for option in options:
        if not option.isprintable():
            raise ExperimentsError(
                f"{option!r} cannot be a line of a batch script; give a name without control "
                "characters"
            )
    lines = [f"#SBATCH {option}" for option in (*map(shlex.quote, options), *site.options)]
    command = f"exec {shlex.join(job.command)}"
    enter = f"cd {shlex.quote(str(job.folder))}"
    return "\n".join(("#!/bin/bash", *lines, "", *site.prepare, enter, command, ""))
