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

import docker

from experiments import containers, leftovers
from experiments.environments.command import Command, Container, Process
from experiments.environments.mpiexec import outside_jobs
from experiments.errors import ExperimentsError
from experiments.provision.engine import FAILURES

TICK = 0.1  # seconds between two looks
KILLED = 3.0  # seconds until a process that was killed is gone


class EngineLost(ExperimentsError):
    """The container engine stopped answering."""


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
        if isinstance(command, Container):
            return _container(command, log, client, tick)
        with containers.waiting(command, client) as process:
            return _process(process, log, tick)
    except FAILURES as error:
        raise EngineLost(
            f"the container engine failed: {_brief(error)}; finished launches are kept: see that "
            "it runs (invoke doctor), then complete the campaign with --resume"
        ) from error


def _container(
    command: Container, log: Path, client: "docker.DockerClient", tick: Callable[[], None]
) -> int:
    with containers.started(command, client) as container:
        try:
            while container.status in ("created", "running"):
                time.sleep(TICK)
                tick()
                container.reload()
            return int(container.attrs["State"]["ExitCode"])
        finally:
            with contextlib.suppress(*FAILURES, OSError):
                log.write_bytes(container.logs())


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
            _end(process, command.grace)
            leftovers.end_marked(mark)
            leftovers.remove_segments(before)  # a launcher may say that all went well


def _end(process: "subprocess.Popen[bytes]", grace: float) -> None:
    """Ask the command's process group to end, wait, then end it."""
    for number, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, KILLED)):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)


def _brief(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
