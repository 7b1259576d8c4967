"""Clears away what a killed driver left: processes, containers, networks, shared memory, files.

Run by that driver's watchdog (python -m experiments.execution.cleanup.reaper), which waits for its
end, or by the next driver where the watchdog was killed too. Imports an
engine's client only when there is one to ask: waiting shall cost nothing.
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

from experiments.processes import folder_lock, tracking
from experiments.processes.folder_lock import Claim, Facts
from experiments.provision.engines import dockerd, engine_refcount

LOG = Path("logs/guard.log")  # in the results folder
GOODBYE = b"."  # what a driver says that has cleared away everything itself
GRACE = 1.0  # seconds that a launcher gets to end its ranks by itself
START = 0.3  # seconds in which a process that was just being started comes to carry the mark
DAEMON_GRACE = 30.0  # seconds; dockerd itself gives its containers 15 before it ends them
ENGINE_PATIENCE = 30.0  # seconds in which an engine must do what is asked of it
SETTLE = 1.5  # seconds in which a request that a dying driver sent becomes a container


def clear(
    folder: Path, facts: Facts, patience: float = ENGINE_PATIENCE, settle: float = SETTLE
) -> str:
    """End and remove everything that a driver left which noted these facts; what that was.

    Args:
        folder: its results folder.
        patience: seconds that an engine gets.
        settle: seconds in which nothing may come any more in an engine.
    """
    parts = [_in_engines(facts, patience, settle), _files(folder)]
    if facts["place"] == folder_lock.place():
        parts = [_processes(facts), *parts, _segments(facts), _daemons(facts)]
    return ", ".join(_done(parts)) or "nothing was left"


def clear_lost(folder: Path, facts: Facts) -> None:
    """The same by an interrupted driver itself, of what only it could have removed: it may have
    been interrupted between a beginning and the statement that sees to its end."""
    _done([_processes(facts), _files(folder), _segments(facts)])


def _done(parts: Iterable[Iterator[str]]) -> list[str]:
    """What stands in the way of one part lets the others be."""
    told: list[str] = []
    for part in parts:
        try:
            told += part
        except OSError as error:
            told.append(str(error))
    return told


def watch(folder: Path, descriptor: int) -> None:
    """A guard's life: wait for the driver's end, then clear away what it left.

    Args:
        folder: the results folder.
        descriptor: of the lock file, as inherited from the driver.
    """
    if os.read(sys.stdin.fileno(), 1) == GOODBYE:  # empty where the driver ended without a word
        return
    began, held = time.monotonic(), Claim(folder, descriptor)
    facts = held.facts()
    if facts:
        try:
            told = clear(folder, facts)
        except Exception as error:  # nobody else would hear of it
            told = f"{type(error).__name__}: {error}"
        seconds = time.monotonic() - began
        _log(folder, f"process {facts['driver']} was killed; cleared in {seconds:.1f} s: {told}")
    held.release()


def _processes(facts: Facts) -> Iterator[str]:
    if count := tracking.ask_marked(facts["driver"], GRACE):
        yield f"processes: {count}"
    tracking.end_marked(facts["driver"])
    time.sleep(START)
    tracking.end_marked(facts["driver"])


def _in_engines(facts: Facts, patience: float, settle: float) -> Iterator[str]:
    from experiments.provision.engines import engine
    from experiments.provision.images import removal  # half a second that waiting need not pay

    if "campaign" not in facts:  # killed while it made images
        with contextlib.suppress(engine.EngineMissing):  # then the next driver does it
            client = engine.answering()
            if client and (removed := removal.remove_abandoned(client)):
                yield f"in docker: {' '.join(removed)}"
    for name in facts.get("engines", ()):
        with contextlib.ExitStack() as stack:
            connect = _closing(_connecting(name, facts["driver"]), stack)
            try:
                removed = removal.remove_late(connect, facts["campaign"], patience, settle)
            except engine.EngineMissing as error:
                yield str(error)
            else:
                if removed:
                    yield f"in {name}: {' '.join(removed)}"


def _connecting(name: str, driver: str) -> Callable[[], Any]:
    """How an engine is reached, the one that the driver started included."""
    if name == "podman":
        from experiments.provision import podman  # as above

        return functools.partial(podman.answering, int(driver.partition(".")[0]))
    from experiments.provision.engines import engine

    return engine.answering


def _closing(connect: Callable[[], Any], stack: contextlib.ExitStack) -> Callable[[], Any]:
    """The same, its clients closed with the stack."""

    def connected() -> Any:
        client = connect()
        if client:
            stack.callback(client.close)
        return client

    return connected


def _segments(facts: Facts) -> Iterator[str]:
    before = {Path(name) for name in facts["segments"]}
    there = tracking.segments()
    tracking.remove_segments(before)
    if removed := there - tracking.segments():
        yield f"shared memory: {' '.join(sorted(path.name for path in removed))}"


def _files(folder: Path) -> Iterator[str]:
    """Launches under way and files being written, none of which is a result; samples without
    their launch's JSON stay, until that launch is measured again."""
    incoming = folder / "incoming"
    for path in (incoming, *folder.glob(".*.json.*")):
        if path.exists():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
            yield path.name


def _daemons(facts: Facts) -> Iterator[str]:
    used = dockerd.ours() if engine_refcount.there_are() else ""
    if count := tracking.end_daemons(facts["driver"], DAEMON_GRACE, but=used):
        yield f"engines started for it: {count}"


def _log(folder: Path, line: str) -> None:
    with contextlib.suppress(OSError):  # a full disk, or a folder that is gone
        path = folder / LOG
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as log:
            log.write(f"{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())} {line}\n")


if __name__ == "__main__":
    watch(Path(sys.argv[1]), int(sys.argv[2]))
