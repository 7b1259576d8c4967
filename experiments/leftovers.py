"""What killed ranks leave on the machine: processes and shared-memory files. Finds and ends them.

A rank that ends by itself, or under a launcher that lives, cleans up; one that was killed cannot.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

MARK = "HBMCOMM_LAUNCH"
"""Variable by which the processes of one launch are known, whatever group they are in."""

SHM = Path("/dev/shm")
SEGMENTS = ("sm_segment.*", "mpich_shm_*", "ucx_shm_*", "Intel_MPI_*", "hbmcomm.*")
"""How Open MPI, MPICH and Intel MPI name the files that their ranks share, and transport direct
where it cannot share nameless ones: only until every rank has mapped them."""

END_PATIENCE = 2.0  # seconds until what is killed is gone
MAP_PATIENCE = 1.0  # seconds between making a file and mapping it
POLL = 0.02  # seconds


def segments() -> set[Path]:
    """The shared-memory files of ranks that are there now."""
    return {path for pattern in SEGMENTS for path in SHM.glob(pattern)}


def end_marked(mark: str) -> None:
    """Kill every process whose environment carries the mark, and wait until none is left."""
    deadline = time.monotonic() + END_PATIENCE
    while (pids := _marked(mark)) and time.monotonic() < deadline:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(POLL)


def remove_segments(before: set[Path]) -> None:
    """Remove this user's files that came since `before` and that no living process maps.

    Another job gets time to map the file that it may just have made.
    """
    came = segments() - before
    if came:
        time.sleep(MAP_PATIENCE)
    for path in came - _mapped():
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid():
                path.unlink()


def _marked(mark: str) -> list[int]:
    """Living processes with the mark; one that has ended shows no environment."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def _mapped() -> set[Path]:
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="replace").splitlines():
                parts = line.split(None, 5)
                if len(parts) == 6 and parts[5].startswith(f"{SHM}/"):
                    found.add(Path(parts[5]))
    return found
