"""Start one command, watch it, and leave nothing of it behind, whatever happens.

Knows neither launches nor results: a command, a log file and a function to call while waiting.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import docker

from experiments import leftovers
from experiments.environments.command import Command, Container, Process
from experiments.environments.mpiexec import outside_jobs
from experiments.errors import ExperimentsError
from experiments.provision import seccomp
from experiments.provision.engine import FAILURES

TICK = 0.1  # seconds between two looks
GRACE = 3.0  # seconds between asking a process to end and ending it


class EngineLost(ExperimentsError):
    """The container engine stopped answering."""


class ContainerRefused(ExperimentsError):
    """The engine works and does not want this container: a missing image, cpuset or device."""


def execute(
    command: Command, log: Path, client: "docker.DockerClient | None", tick: Callable[[], None]
) -> int:
    """Run to the end and return the exit code; output goes to `log`.

    `tick` is called every TICK seconds; what it raises, Ctrl-C included, ends the command.

    Raises:
        EngineLost: when the engine fails while the container runs.
    """
    if isinstance(command, Process):
        return _process(command, log, tick)
    if client is None:
        raise EngineLost("a container was asked for and no engine is connected; see invoke doctor")
    try:
        return _container(command, log, client, tick)
    except FAILURES as error:
        raise EngineLost(
            f"the container engine failed: {_brief(error)}; finished launches are kept: see that "
            "it runs (invoke doctor), then complete the campaign with --resume"
        ) from error


def _process(command: Process, log: Path, tick: Callable[[], None]) -> int:
    mark = leftovers.new_mark()
    environment = {**outside_jobs(os.environ), **command.environment, leftovers.MARK: mark}
    before = leftovers.segments()
    with log.open("wb") as output:
        process = subprocess.Popen(
            command.argv,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the driver, which then ends the launch
        )
        try:
            while process.poll() is None:
                time.sleep(TICK)
                tick()
            return process.returncode
        finally:
            _end(process)
            leftovers.end_marked(mark)
            if process.returncode:
                leftovers.remove_segments(before)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ask the command's process group to end, wait, then end it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _container(
    command: Container, log: Path, client: "docker.DockerClient", tick: Callable[[], None]
) -> int:
    container: Any = _created(command, client)
    try:
        _accepted(container.start)
        while container.status in ("created", "running"):
            time.sleep(TICK)
            tick()
            container.reload()
        return int(container.attrs["State"]["ExitCode"])
    finally:
        with contextlib.suppress(*FAILURES, OSError):
            log.write_bytes(container.logs())
        with contextlib.suppress(*FAILURES):
            container.remove(force=True)


def _created(command: Container, client: "docker.DockerClient") -> Any:
    argv = list(command.argv)
    options = seccomp.resolved(command.engine, command.options)
    return _accepted(lambda: client.containers.create(command.image, argv, **options))


def _accepted(call: Callable[[], Any]) -> Any:
    """The answer to a request that a healthy engine may still refuse.

    Raises:
        ContainerRefused: with the engine's own words.
    """
    try:
        return call()
    except docker.errors.APIError as error:
        if not error.is_client_error():
            raise
        raise ContainerRefused(
            f"the engine refused the container: {error.explanation}; where the image is missing, "
            "make it with ./inv build; finished launches are kept for --resume"
        ) from error


def _brief(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
