"""Start one command, watch it, and leave nothing of it behind, whatever happens.

Knows neither launches nor results: a command, a log file and a function to call while waiting.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker

from experiments.environments.mpiexec import ALLOCATION, outside_jobs
from experiments.environments.process import Command, Container, Process
from experiments.jobs import containers
from experiments.model import plain_file
from experiments.model.errors import ExperimentsError
from experiments.processes import executables, tracking
from experiments.provision.engine import FAILURES

TICK = 0.1  # seconds between two looks


class MachineGone(ExperimentsError):
    """A machine that a launch runs on, or what ends launches there, is gone."""


Poll = Callable[[], int | None]
"""The exit code of a command that has ended; None while it runs."""


def execute(
    command: Command, log: Path, client: "docker.DockerClient | None", tick: Callable[[], None]
) -> int:
    """Run to the end and return the exit code; output goes to `log`.

    `tick` is called every TICK seconds; what it raises, Ctrl-C included, ends the command.

    Raises:
        ExperimentsError: when the engine fails while the container runs.
    """
    with running(command, log, client) as poll:
        while (code := poll()) is None:
            time.sleep(TICK)
            tick()
        return code


@contextlib.contextmanager
def running(command: Command, log: Path, client: "docker.DockerClient | None") -> Iterator[Poll]:
    """A command from its start to the end of the block, which ends it; output goes to `log`.

    Raises:
        ExperimentsError: when the engine fails while the container runs.
    """
    if isinstance(command, Process):
        with _process(command, log) as poll:
            yield poll
        return
    if client is None:
        raise ExperimentsError(
            "a container was asked for and no engine is connected; see invoke doctor"
        )
    try:
        with contextlib.ExitStack() as stack:
            if isinstance(command, Container):
                yield stack.enter_context(_container(command, log, client))
            else:
                process = stack.enter_context(containers.waiting(command, client))
                yield stack.enter_context(_process(process, log))
    except FAILURES as error:
        why, *_ = [*str(error).splitlines(), type(error).__name__]
        raise ExperimentsError(
            f"the container engine failed: {why[:200]}; finished launches are kept: see that "
            "it runs (invoke doctor), then complete the campaign with --resume"
        ) from error


@contextlib.contextmanager
def _container(command: Container, log: Path, client: "docker.DockerClient") -> Iterator[Poll]:
    with containers.started(command, client) as container:

        def poll() -> int | None:
            container.reload()
            if container.status in ("created", "running"):
                return None
            return int(container.attrs["State"]["ExitCode"])

        try:
            yield poll
        finally:
            with contextlib.suppress(*FAILURES, OSError), plain_file.written(log) as file:
                file.write(container.logs())


@contextlib.contextmanager
def _process(command: Process, log: Path) -> Iterator[Poll]:
    mark = tracking.new_mark()
    kept = ALLOCATION if command.in_job else ()
    environment = {**outside_jobs(os.environ, kept), **command.environment, tracking.MARK: mark}
    before = tracking.segments()
    process, grace = executables.start(command.argv, log, environment), command.grace
    try:
        yield process.poll
    except MachineGone:
        grace = 0.0  # a launcher would wait for what is gone
        raise
    finally:
        executables.end(process, grace, os.killpg)
        tracking.end_marked(mark)
        tracking.remove_job_folder(process.pid)
        tracking.remove_segments(before)  # a launcher may say that all went well
