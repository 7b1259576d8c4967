"""A job of Slurm from its submission to its end. Knows nothing of what it runs."""

import contextlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.cluster.states import GONE, State, described, waiting
from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.processes import executables
from experiments.processes.executables import Ended, captured

LOOK = 0.5  # seconds between two looks at a job's log
ASK, ASK_LATER, SHARE = 1.0, 15.0, 0.1
"""Seconds between two questions to Slurm: at least, at most, and in between the share of the time
since the job was submitted or began."""
SILENT = 120.0  # seconds without an answer of Slurm after which a job is no longer followed
ENDING = 60.0  # seconds in which a job that was cancelled ends
MOST = 2**24  # bytes of a log that one look reads


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
        found = state(job)
        if found and found.is_over:
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
    tail, said = _Tail(log, show), ""
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
            found = state(job)
            if found is None:
                if now - answered > SILENT:
                    raise ExperimentsError(
                        f"Slurm does not answer for {now - answered:.0f} s; job {job} goes on "
                        f"without this process: see `squeue --job {job}`"
                    )
                continue
            answered = now
            if found.never:
                cancel(job)
            if found.never or found.is_over:
                tail.look()
                return found
            if (text := waiting(found)) != said:
                said, since = text, now
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
