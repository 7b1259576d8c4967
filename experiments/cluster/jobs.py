"""Jobs of batch systems: the one of this process, and one of Slurm from its script to its end.

Knows nothing of what a job runs. Its script is text that a user can read, change and submit.
"""

import contextlib
import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from experiments.cluster.sites import Site
from experiments.cluster.states import GONE, State, described, waiting
from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Launches
from experiments.processes import executables
from experiments.processes.executables import Ended, captured

SYSTEMS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_ENCLOSING_ID": "Flux",
}
"""Batch systems, by the variable that holds a job's number."""
SLURM = SYSTEMS["SLURM_JOB_ID"]
SPARE = 1.5
"""Limit of a job over its forecast, which knows nothing of how well an MPI does between nodes."""
START = 5  # minutes more: the file systems of clusters are slow to start Python
LOOK = 0.5  # seconds between two looks at a job's log
ASK, ASK_LATER, SHARE = 1.0, 15.0, 0.1
"""Seconds between two questions to Slurm: at least, at most, and in between the share of the time
since the job was submitted or began."""
SILENT = 120.0  # seconds without an answer of Slurm after which a job is no longer followed
ENDING = 60.0  # seconds in which a job that was cancelled ends
MOST = 2**24  # bytes of a log that one look reads


def held(environment: Mapping[str, str]) -> tuple[str, str] | None:
    """The batch system and the job that a process with these variables runs in."""
    for variable, system in SYSTEMS.items():
        if job := environment.get(variable):
            return system, job
    return None


def check_allocation(environment: Mapping[str, str], asked: Launches) -> None:
    """Refuse a campaign that needs more nodes or another launcher than the allocation has.

    Raises:
        ExperimentsError: with what to ask for.
    """
    if (own := held(environment)) is None:
        raise ExperimentsError(
            "this process runs in no allocation of a batch system, and the campaign needs "
            f"{asked.nodes} nodes: submit it with ./inv run, or hold an allocation"
        )
    system, job = own
    nodes = int(environment.get("SLURM_JOB_NUM_NODES", 0))  # 0: only Slurm says how many
    if 0 < nodes < asked.nodes:
        raise ExperimentsError(
            f"{asked.nodes} nodes were asked for and job {job} has {nodes}: ask for "
            f"as many with --nodes {nodes}, or for a larger allocation"
        )
    if system != SLURM and asked.launcher == "srun":
        raise ExperimentsError(
            f"job {job} is one of {system}, which has no srun: pass --launcher mpiexec"
        )


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
    return asked or site.time or str(START + math.ceil(SPARE * seconds / 60))


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


def submit(script: str) -> str:
    """Submit a script; the job's number.

    Raises:
        ExperimentsError: with Slurm's own words.
    """
    done = _slurm(["sbatch", "--parsable"], script)
    if done.returncode:
        *_, why = ["no reason was given", *done.stderr.strip().splitlines()]
        raise ExperimentsError(
            f"sbatch does not take the job: {why}; see the site's table in sites.toml, and the "
            "script with --dry-run"
        )
    return done.stdout.strip().partition(";")[0]


def state(job: str) -> State | None:
    """A job as Slurm describes it now; None where Slurm does not answer."""
    done = _slurm(["scontrol", "show", "job", "--oneliner", job])
    if done.returncode == 0:
        return described(done.stdout)
    return State(GONE) if "Invalid job id" in done.stderr else None


def cancel(job: str) -> None:
    """Cancel a job, and wait until it has ended: until then it writes into its folder."""
    _slurm(["scancel", job])
    deadline = time.monotonic() + ENDING
    while time.monotonic() < deadline:
        job_state = state(job)
        if job_state and job_state.is_over:
            return
        time.sleep(LOOK)


def follow(
    job: str, log: Path, show: Callable[[str], object], say: Callable[[str], object]
) -> State:
    """Wait until a job has ended or turns out never to start; how it ended.

    A job that never starts is cancelled, and so is one if this call is interrupted.

    Args:
        show: takes what the job writes, as it comes.
        say: takes what the job waits for, whenever that changes.

    Raises:
        ExperimentsError: Slurm does not answer any more; the job goes on without this process.
    """
    tail, last_text = _Tail(log, show), ""
    since = answered = time.monotonic()
    asked = since - ASK
    try:
        while True:
            tail.look()
            now = time.monotonic()
            if now - asked < min(max(ASK, SHARE * (now - since)), ASK_LATER):
                time.sleep(LOOK)
                continue
            asked = now
            job_state = state(job)
            if job_state is None:
                if now - answered > SILENT:
                    raise ExperimentsError(
                        f"Slurm does not answer for {now - answered:.0f} s; job {job} goes on "
                        f"without this process: see `squeue --job {job}`"
                    )
                continue
            answered = now
            if job_state.never:
                cancel(job)
            if job_state.never or job_state.is_over:
                tail.look()
                return job_state
            if (text := waiting(job_state)) != last_text:
                last_text, since = text, now
                say(f"job {job}: {text}")
    except KeyboardInterrupt:
        cancel(job)
        tail.look()
        raise


class _Tail:
    """A file that grows, which may not exist yet."""

    def __init__(self, path: Path, show: Callable[[str], object]) -> None:
        self._path, self._show, self._at = path, show, 0

    def look(self) -> None:
        """Pass on what is new."""
        nothing_yet = contextlib.suppress(FileNotFoundError, ValueError)  # or no plain file
        with nothing_yet, plain_file.opened(self._path) as file:
            file.seek(self._at)
            if new := file.read(MOST):
                self._at += len(new)
                self._show(new.decode(errors="replace"))


def _slurm(words: Sequence[str], text: str | None = None) -> Ended:
    program = executables.find(words[0])
    if program is None:
        raise ExperimentsError(
            f"{words[0]} is not installed here, so that no job can be submitted: use a login node "
            "of the cluster, or an allocation that you hold"
        )
    return captured([program, *words[1:]], input=text or "")
