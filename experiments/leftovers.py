"""What killed ranks leave on the machine: processes and shared-memory files. Finds and ends them.

A rank that ends by itself, or under a launcher that lives, cleans up; one that was killed cannot.
"""

import contextlib
import os
import signal
from pathlib import Path

MARK = "HBMCOMM_LAUNCH"
"""Variable by which the processes of one launch are known, whatever group they are in."""

SHM = Path("/dev/shm")
SEGMENTS = ("sm_segment.*", "mpich_shm_*", "ucx_shm_*", "Intel_MPI_*")
"""How Open MPI, MPICH and Intel MPI name the files that their ranks share."""


def segments() -> set[Path]:
    """The MPIs' shared-memory files that are there now."""
    return {path for pattern in SEGMENTS for path in SHM.glob(pattern)}


def end_marked(mark: str) -> None:
    """Kill every process whose environment carries the mark."""
    wanted = f"{MARK}={mark}".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if wanted in path.read_bytes().split(b"\0"):
                os.kill(int(path.parent.name), signal.SIGKILL)


def remove_segments(before: set[Path]) -> None:
    """Remove this user's files that came since `before` and that no living process maps."""
    for path in segments() - before - _mapped():
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid():
                path.unlink()


def _mapped() -> set[Path]:
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="replace").splitlines():
                parts = line.split(None, 5)
                if len(parts) == 6 and parts[5].startswith(f"{SHM}/"):
                    found.add(Path(parts[5]))
    return found
