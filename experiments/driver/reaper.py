"""Removes what a killed driver left: processes, containers, networks, shared memory, files.

Runs as that driver's watchdog (python -m experiments.driver.reaper), or in the next
driver if the watchdog was killed as well. Imports an engine's client only when it is needed: a
watchdog that waits must cost nothing.
"""

import contextlib
import functools
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.processes import folder_lock, tracking
from experiments.processes.folder_lock import Facts, FolderLock
from experiments.provision import dockerd

LOG = Path("logs/guard.log")  # in the results folder
GOODBYE = b"."  # from a driver that has cleaned up itself
GRACE = 1.0  # seconds for a launcher to end its ranks
START = 0.3  # seconds until a process that was being started carries the mark
DAEMON_GRACE = 30.0  # seconds; dockerd itself gives its containers 15 before it ends them
ENGINE_PATIENCE = 30.0  # seconds for an engine to answer a request
SETTLE = 1.5  # seconds until the last request of a dying driver has become a container


def clear(
    folder: Path, facts: Facts, patience: float = ENGINE_PATIENCE, settle: float = SETTLE
) -> str:
    """End and remove everything that the driver with these facts left; describes it in words.

    Args:
        folder: its results folder.
        patience: seconds for an engine to answer.
        settle: seconds without a new container after which an engine is taken to be clean.
    """
    parts = [_in_engines(facts, patience, settle), unfinished(folder)]
    if facts["place"] == folder_lock.pid_namespace():
        parts = [_processes(facts), *parts, _segments(facts), _daemons(facts)]
    return ", ".join(_done(parts)) or "nothing was left"


def clear_lost(folder: Path, facts: Facts) -> None:
    """Clean up after an interrupted driver, from that driver itself.

    For resources that it created before it registered their handler.
    """
    _done([_processes(facts), unfinished(folder), _segments(facts)])


def _done(parts: Iterable[Iterator[str]]) -> list[str]:
    """Run all parts; an error in one becomes its description and does not stop the others."""
    done: list[str] = []
    for part in parts:
        try:
            done += part
        except OSError as error:
            done.append(str(error))
    return done


def watch(folder: Path, descriptor: int) -> None:
    """The watchdog: wait for the driver's end, then remove what it left.

    Args:
        folder: the results folder.
        descriptor: of the lock file, as inherited from the driver.
    """
    if os.read(sys.stdin.fileno(), 1) == GOODBYE:  # empty if the driver was killed
        return
    began, lock = time.monotonic(), FolderLock(folder, descriptor)
    facts = lock.facts()
    if facts:
        try:
            removed = clear(folder, facts)
        except Exception as error:  # the log is the only place to report it
            removed = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - began
        _log(folder, f"process {facts['driver']} was killed; cleared in {seconds:.1f} s: {removed}")
    lock.release()


def _processes(facts: Facts) -> Iterator[str]:
    if "mark" not in facts:
        return
    if count := tracking.terminate_marked(facts["mark"], GRACE):
        yield f"processes: {count}"
    tracking.end_marked(facts["mark"])
    time.sleep(START)
    tracking.end_marked(facts["mark"])


def _in_engines(facts: Facts, patience: float, settle: float) -> Iterator[str]:
    from experiments.provision import (
        engine,
        podman,  # these take half a second
        removal,
    )

    if "campaign" not in facts:  # killed while it made images
        with contextlib.suppress(engine.EngineMissing):  # the next driver does it
            client = engine.answering()
            if client and (removed := removal.remove_abandoned(client)):
                yield f"in docker: {' '.join(removed)}"
    for name in facts.get("engines", ()):
        with contextlib.ExitStack() as stack:
            answering: Callable[[], Any] = engine.answering
            if name == "podman":  # also a service that the driver started
                answering = functools.partial(podman.answering, tracking.pid_of(facts["driver"]))
            connect = functools.partial(_connect, answering, stack)
            try:
                removed = removal.remove_late(connect, facts["campaign"], patience, settle)
            except engine.EngineMissing as error:
                yield str(error)
            else:
                if removed:
                    yield f"in {name}: {' '.join(removed)}"


def _connect(answering: Callable[[], Any], stack: contextlib.ExitStack) -> Any:
    """A client of an engine that answers, closed with the stack."""
    if client := answering():
        stack.callback(client.close)
    return client


def _segments(facts: Facts) -> Iterator[str]:
    if "inode" not in facts:  # a copied file may come from anyone, with any list
        return
    before = {Path(name) for name in facts["segments"]}
    there = tracking.segments()
    tracking.remove_segments(before)
    if removed := there - tracking.segments():
        yield f"shared memory: {' '.join(sorted(path.name for path in removed))}"


def unfinished(folder: Path) -> Iterator[str]:
    """Remove unfinished launches and files, and name them.

    Samples without their launch's JSON stay until that launch is measured again.
    """
    incoming = folder / "incoming"
    for path in (incoming, *folder.glob(".*.json.*")):
        if path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield path.name


def _daemons(facts: Facts) -> Iterator[str]:
    if "mark" not in facts:
        return
    used = dockerd.ours() if dockerd.in_use() else ""
    if count := tracking.end_daemons(facts["mark"], DAEMON_GRACE, used):
        yield f"engines started for it: {count}"


def _log(folder: Path, line: str) -> None:
    with contextlib.suppress(OSError, ExperimentsError):  # a full disk; no folder, or no file
        path = folder / LOG
        path.parent.mkdir(exist_ok=True)
        with plain_file.written(path, append=True) as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n".encode())


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
