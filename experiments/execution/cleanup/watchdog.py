"""A driver's guard: a process that clears away what the driver leaves when it is killed.

Here is the driver's side: it claims the results folder, starts the guard, says what it begins, and
takes its leave. What the guard does stands in reaper.py.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import docker

from experiments.execution.cleanup import reaper
from experiments.model.checkout import ROOT
from experiments.processes import folder_lock, tracking
from experiments.processes.folder_lock import Claim
from experiments.provision.engines.engine import EngineMissing
from experiments.provision.images import removal

LEAVE_PATIENCE = 5.0  # seconds in which a guard that was told goodbye ends
NO_PATIENCE = 1.0  # seconds for an engine that may not run; before measuring it is asked again


class Watch:
    """A results folder that is this driver's alone, and watched."""

    def __init__(self, claimed: Claim) -> None:
        self._claim = claimed

    @contextlib.contextmanager
    def campaign(self, name: str, clients: Mapping[str, docker.DockerClient]) -> Iterator[None]:
        """Containers and networks labelled so are removed before, where an engine died on them,
        and after.

        Args:
            name: the campaign's id, as the label has it.
            clients: of the engines that it runs in, by their names.

        Raises:
            EngineMissing: one that fails before.
        """
        self._claim.note(campaign=name, engines=list(clients))
        for client in clients.values():
            removal.remove(client, name)
        settle = 0.0
        try:
            yield
        except KeyboardInterrupt:
            settle = reaper.SETTLE  # it may have cut off a request, which the engine still fulfils
            raise
        finally:
            for client in clients.values():
                with contextlib.suppress(EngineMissing):  # one that is gone is told elsewhere
                    _remove(client, name, settle)


def _remove(client: docker.DockerClient, campaign: str, settle: float) -> None:
    if settle:
        removal.remove_late(lambda: client, campaign, reaper.ENGINE_PATIENCE, settle)
    else:
        removal.remove(client, campaign)


@contextlib.contextmanager
def watching(folder: Path, say: Callable[[str], None]) -> Iterator[Watch]:
    """Claim a results folder and have a guard for as long as the block lasts.

    Everything that is started meanwhile carries this driver's mark and ends with it.

    Raises:
        FolderTaken: another driver has it.
    """
    claimed = folder_lock.take(folder, say)
    try:
        if left := claimed.facts():
            say(f"cleared away of a killed driver: {reaper.clear(folder, left, NO_PATIENCE, 0.0)}")
            claimed.forget()
        me = tracking.identity(os.getpid())
        claimed.note(
            driver=me,
            place=folder_lock.place(),
            host=os.uname().nodename,
            segments=sorted(str(path) for path in tracking.segments()),
        )
        with _guard(folder, claimed), _marked(me):
            try:
                yield Watch(claimed)
            except KeyboardInterrupt:
                reaper.clear_lost(folder, claimed.facts())
                raise
    finally:
        claimed.release()


@contextlib.contextmanager
def _guard(folder: Path, claimed: Claim) -> Iterator[None]:
    """The guard reads from a pipe that only this process can write to: at its end, it is dead."""
    guard = subprocess.Popen(
        command(folder, claimed.descriptor),
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(claimed.descriptor,),
        start_new_session=True,  # what ends this process's group leaves it alone
        bufsize=0,
    )
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            guard.communicate(reaper.GOODBYE, LEAVE_PATIENCE)
        guard.kill()
        guard.wait()


def command(folder: Path, descriptor: int) -> list[str]:
    """What a guard is started with; the shell, so that it is deaf before Python is up."""
    program = [
        sys.executable,
        "-m",
        "experiments.execution.cleanup.reaper",
        str(folder.absolute()),
        str(descriptor),
    ]
    return ["/bin/sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "sh", *program]


@contextlib.contextmanager
def _marked(me: str) -> Iterator[None]:
    before = os.environ.get(tracking.MARK)
    os.environ[tracking.MARK] = me
    try:
        yield
    finally:
        if before is None:
            del os.environ[tracking.MARK]
        else:
            os.environ[tracking.MARK] = before
