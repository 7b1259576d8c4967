"""The driver's side of its watchdog, a process that cleans up if the driver is killed.

Locks the results folder, starts the watchdog, notes what the driver begins, and dismisses the
watchdog at the end. reaper.py is the watchdog itself.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import docker

from experiments.driver import reaper
from experiments.model.checkout import ROOT
from experiments.processes import folder_lock, tracking
from experiments.processes.executables import variable
from experiments.processes.folder_lock import FolderLock
from experiments.provision import removal
from experiments.provision.engine import EngineMissing

LEAVE_PATIENCE = 5.0  # seconds until a dismissed watchdog has ended
NO_PATIENCE = 1.0  # seconds for an engine that may not run; it is tried again before measuring


@contextlib.contextmanager
def in_engines(
    lock: FolderLock, name: str, clients: Mapping[str, docker.DockerClient]
) -> Iterator[None]:
    """Remove the containers and networks of a campaign before and after the block.

    They exist before it if an engine died while they ran.

    Args:
        lock: of its results folder.
        name: the label's value: Campaign.label.
        clients: of the engines that it runs in, by name.

    Raises:
        EngineMissing: an engine fails before the block.
    """
    lock.note(campaign=name, engines=list(clients))
    for client in clients.values():
        removal.remove(client, name)
    settle = 0.0
    try:
        yield
    except KeyboardInterrupt:
        settle = reaper.SETTLE  # the engine may still fulfil an interrupted request
        raise
    finally:
        for client in clients.values():
            with contextlib.suppress(EngineMissing):  # the launch that lost it reports it
                _remove(client, name, settle)


def _remove(client: docker.DockerClient, campaign: str, settle: float) -> None:
    if settle:
        removal.remove_late(lambda: client, campaign, reaper.ENGINE_PATIENCE, settle)
    else:
        removal.remove(client, campaign)


@contextlib.contextmanager
def watching(folder: Path, say: Callable[[str], None]) -> Iterator[FolderLock]:
    """Lock a results folder and run a watchdog for the time of the block.

    All processes that are started in the block carry this driver's mark and end with it.

    Raises:
        ExperimentsError: another driver has locked it.
    """
    lock = folder_lock.take(folder, say)
    try:
        if left := lock.facts():
            say(f"cleared away of a killed driver: {reaper.clear(folder, left, NO_PATIENCE, 0.0)}")
            lock.forget()
        mark = tracking.own_mark()
        lock.note(
            driver=tracking.identity(os.getpid()),
            mark=mark,
            place=folder_lock.pid_namespace(),
            host=os.uname().nodename,
            inode=lock.inode,
            segments=sorted(str(path) for path in tracking.segments()),
        )
        with _watchdog(folder, lock), variable(tracking.MARK, mark):
            try:
                yield lock
            except KeyboardInterrupt:
                reaper.clear_lost(folder, lock.facts())
                raise
    finally:
        lock.release()


@contextlib.contextmanager
def _watchdog(folder: Path, lock: FolderLock) -> Iterator[None]:
    """The watchdog reads a pipe that only this process writes: its end is this process's end.

    A shell ignores the signals before Python has started.
    """
    program = [sys.executable, "-m", reaper.__name__, str(folder.absolute()), str(lock.descriptor)]
    process = subprocess.Popen(
        ["/bin/sh", "-c", "trap '' INT TERM HUP; exec \"$@\"", "sh", *program],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(lock.descriptor,),
        start_new_session=True,  # a signal to this process's group must not end it
        bufsize=0,
    )
    try:
        yield
    finally:
        with contextlib.suppress(BrokenPipeError, subprocess.TimeoutExpired):
            process.communicate(reaper.GOODBYE, LEAVE_PATIENCE)
        process.kill()
        process.wait()
