"""Why a launch failed, with what its log says. Starts and stores nothing."""

import re
import shutil
from pathlib import Path

from experiments.model.errors import ExperimentsError
from experiments.model.launch import Cell
from experiments.processes import files
from experiments.processes.files import last_lines

DISK_FULL = 2**20  # bytes free below which a failed launch is laid to the disk
LAST_LINES = 12  # of a failed launch's log that the error message repeats
REPORTED = re.compile(r"rank \d+: (\w+: .+)")  # as programs/rank_process.py reports an error
RESUME = "--resume goes on from here"
"""What to do about a launch that failed, as an error message ends."""


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


def disk_full(folder: Path) -> bool:
    """Whether a failure in that folder is laid to the disk."""
    return shutil.disk_usage(folder).free < DISK_FULL


def failed(name: str, code: int, log: Path) -> LaunchFailed:
    """The error for a launch that ended with an exit code other than 0.

    A full disk explains itself; the launcher's many lines about the ranks that it ended do not.
    """
    if disk_full(log.parent):
        return LaunchFailed(
            f"launch {name} failed: No space left on device ({log.parent}); make room. Its log is "
            f"{log}. Finished launches are kept: {RESUME}.",
            f"exit code {code}",
        )
    output = "\n".join(f"  {line}" for line in [*_hidden(log), *last_lines(log, LAST_LINES)])
    reason = " (137: ended by SIGKILL, as when memory runs out)" if code in (137, -9) else ""
    return LaunchFailed(
        f"launch {name} failed with exit code {code}{reason}; its last lines:\n{output}\n"
        f"The whole log is {log}. Finished launches are kept: {RESUME}.",
        f"exit code {code}",
    )


def _hidden(log: Path) -> list[str]:
    """The first error that a rank reported, if the last lines do not show it.

    MPI libraries and launchers have much to say after it.
    """
    last = "\n".join(last_lines(log, LAST_LINES))
    first = REPORTED.search(files.text(log))
    return [first[0], "..."] if first and first[1] not in last else []
