"""One launch, watched from an empty folder to a finished launch of a results folder.

Knows neither blocks nor environments: it is given what makes the command.
"""

import contextlib
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker

from experiments.analysis import mpi_transport_log
from experiments.environments.process import Command
from experiments.jobs.execute import execute
from experiments.model.errors import ExperimentsError
from experiments.model.launch import Cell
from experiments.processes.logs import last_lines
from experiments.results import store

STALLED = 180.0  # seconds without one more cell after which a launch is taken to hang
DISK_FULL = 2**20  # bytes free below which a failed launch is laid to the disk
LAST_LINES = 12  # of a failed launch's log that the error message repeats
REPORTED = re.compile(r"rank \d+: (\w+: .+)")  # as programs/rank_process.py reports an error


class LaunchFailed(ExperimentsError):
    """A launch did not end well; what finished before it is kept.

    Attributes:
        why: in a few words: "exit code 139".
        cell: the cell of that turn, where it is known.
    """

    def __init__(self, text: str, why: str) -> None:
        super().__init__(text)
        self.why = why
        self.cell: Cell | None = None


@contextlib.contextmanager
def attended(
    folder: Path,
    name: str,
    prepare: Callable[[Path], Command],
    client: "docker.DockerClient | None",
    within: Callable[[float], None],
    advice: str,
    patience: float = STALLED,
    there: Callable[[float], None] = lambda idle: None,
) -> Iterator[tuple[Path, Command]]:
    """One launch, from an empty folder to a finished launch of a results folder.

    The block looks at what the launch's command wrote into its own folder, before that is taken in.

    Args:
        folder: the results folder.
        prepare: fills the launch's own folder; answers with the command that runs there.
        within: called with the share of the launch that is done, 0 to 1.
        advice: what to do when it fails, as an error message ends.
        patience: seconds in which it gets on, or is ended.
        there: raises once what it runs on is gone; given the seconds since it last got on.

    Raises:
        LaunchFailed: it ended badly, or stood still and was ended.
        ResultsError: it wrote nothing, or something torn.
    """
    with store.incoming(folder, name) as place:
        log, progress = log_of(folder, name), place / "progress"
        seen, moved = "", time.monotonic()

        def tick() -> None:
            nonlocal seen, moved
            text = _text(progress)
            if text != seen:
                seen, moved = text, time.monotonic()
                done, total, *_ = [*text.split(), "0", "0"]
                if int(total):
                    within(int(done) / int(total))
            idle = time.monotonic() - moved
            there(idle)
            if idle > patience:
                why = f"stood still for {patience:.0f} s"
                text = f"launch {name} {why} and was ended; finished launches are kept: {advice}"
                raise LaunchFailed(text, why)

        command = prepare(place)
        code = execute(command, log, client, tick)
        if code:
            raise failed(name, code, log, advice)
        add_chosen(place, log)
        yield place, command
        store.accept(folder, name, place)


def log_of(folder: Path, name: str) -> Path:
    """The file that a launch's output goes to; its folder is there."""
    log = folder / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    return log


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def add_chosen(place: Path, log: Path) -> None:
    """Which ways the MPI says that its messages took, beside what its ranks tried."""
    result = place / "result.json"
    if result.exists():  # accept() refuses a launch without
        environment = store.read_json(result).get("environment", {})
        store.add(place, {"environment": mpi_transport_log.added(environment, _text(log))})


def disk_full(folder: Path) -> bool:
    """Whether a failure in that folder is laid to the disk."""
    return shutil.disk_usage(folder).free < DISK_FULL


def failed(name: str, code: int, log: Path, advice: str) -> LaunchFailed:
    """The error for a launch that ended with an exit code other than 0."""
    output = "\n".join(f"  {line}" for line in [*_hidden(log), *last_lines(log, LAST_LINES)])
    reason = " (137: ended by SIGKILL, as when memory runs out)" if code in (137, -9) else ""
    if disk_full(log.parent):
        reason = f": No space left on device ({log.parent})"
    return LaunchFailed(
        f"launch {name} failed with exit code {code}{reason}; its last lines:\n{output}\n"
        f"The whole log is {log}. Finished launches are kept: {advice}.",
        f"exit code {code}",
    )


def _hidden(log: Path) -> list[str]:
    """The first error that a rank reported, if the last lines do not show it.

    MPI libraries and launchers have much to say after it.
    """
    last = "\n".join(last_lines(log, LAST_LINES))
    first = REPORTED.search(_text(log))
    return [first[0], "..."] if first and first[1] not in last else []
