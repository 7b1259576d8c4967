"""What killed ranks leave on the machine: processes and shared-memory files. Finds and ends them.

A rank that ends by itself, or under a launcher that lives, cleans up; one that was killed cannot.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

MARK = "HBMCOMM_LAUNCH"
"""Variable by which the processes of one launch are known, whatever group they are in. A launch's
mark begins with its driver's identity, which marks all else that this driver starts."""
DAEMON = "HBMCOMM_DAEMON"
"""Variable by which an engine is known that a driver started: it serves others until it is told."""
DAEMONS = ("dockerd", "podman")
"""Programs that end in good order when told to; what they started carries their variables too."""

SHM = Path("/dev/shm")
SEGMENTS = ("sm_segment.*", "mpich_shm_*", "ucx_shm_*", "Intel_MPI_*", "hbmcomm.*")
"""How Open MPI, MPICH and Intel MPI name the files that their ranks share, and transport direct
where it cannot share nameless ones: only until every rank has mapped them."""

END_PATIENCE = 2.0  # seconds until what is killed is gone
MAP_PATIENCE = 1.0  # seconds between making a file and mapping it
POLL = 0.02  # seconds


def identity(pid: int) -> str:
    """Which process has this number now: "PID.START", of clock ticks since boot; "" where none.

    Numbers come again, a number with its start does not. A zombie has ended.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    state, *rest = text.rpartition(")")[2].split()  # proc(5): fields 3 (state) to 52; 22 is start
    return "" if state == "Z" else f"{pid}.{rest[18]}"


def lives(who: str) -> bool:
    """Whether the process of that identity still runs."""
    return identity(int(who.partition(".")[0])) == who


def new_mark() -> str:
    """A mark for one launch of this process."""
    return f"{identity(os.getpid())}.{time.monotonic_ns()}"


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """What an engine is started with: known as this process's, and not among what it measures."""
    rest = {name: value for name, value in environment.items() if name != MARK}
    return rest | {DAEMON: identity(os.getpid())}


def segments() -> set[Path]:
    """The shared-memory files of ranks that are there now."""
    return {path for pattern in SEGMENTS for path in SHM.glob(pattern)}


def mapped() -> set[Path]:
    """The shared-memory files that living processes map, as far as they can be looked into."""
    found = set()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            for line in maps.read_text(errors="replace").splitlines():
                parts = line.split(None, 5)
                if len(parts) == 6 and parts[5].startswith(f"{SHM}/"):
                    found.add(Path(parts[5]))
    return found


def marked(mark: str) -> set[str]:
    """Identities of living processes with the mark, or with one that begins with it."""
    return _with_variable(MARK, mark)


def ask_marked(mark: str, patience: float) -> int:
    """Ask every process with the mark to end, wait for that; how many there were.

    A launcher that is asked removes its folder below /tmp.
    """
    asked = marked(mark)
    _signal(asked, signal.SIGTERM)
    _await_end(asked, patience)
    return len(asked)


def end_marked(mark: str) -> None:
    """Kill every process whose environment carries the mark, and wait until none is left."""
    deadline = time.monotonic() + END_PATIENCE
    while (found := marked(mark)) and time.monotonic() < deadline:
        _signal(found, signal.SIGKILL)
        _await_end(found, deadline - time.monotonic())  # its memory goes after its environment
        for who in found:
            remove_job_folder(int(who.partition(".")[0]))


def remove_job_folder(launcher: int) -> None:
    """Remove the temporary folder of an Open MPI launcher that was killed.

    The next launcher with its PID would find it and refuse to start ("The PMIx server's listener
    thread failed to start", exit code 213). There is none after a launcher that ended by itself.
    Where a process has this PID, it may be a later launcher, whose folder this is.
    """
    if identity(launcher):
        return
    shutil.rmtree(Path(tempfile.gettempdir(), f"ompi.{launcher}"), ignore_errors=True)


def end_daemons(driver: str, patience: float, but: str = "") -> int:
    """End the engines that a driver started, which end what they started; how many there were.

    Args:
        but: identity of one that others use.
    """
    found = {
        who
        for who in _with_variable(DAEMON, driver)
        if who != but and _name(int(who.partition(".")[0])) in DAEMONS
    }
    _end(found, patience)
    return len(found)


def daemon_of_ours(pid: int) -> str:
    """The identity of a process that some driver started as an engine; "" of any other."""
    with contextlib.suppress(OSError):
        if f"\0{DAEMON}=".encode() in b"\0" + Path(f"/proc/{pid}/environ").read_bytes():
            return identity(pid)
    return ""


def end_daemon(who: str, patience: float) -> None:
    """End one engine, which ends what it started."""
    _end({who}, patience)


def remove_segments(before: set[Path]) -> None:
    """Remove this user's files that came since `before` and that no living process maps.

    Another job gets time to map the file that it may just have made.
    """
    came = segments() - before
    if came:
        time.sleep(MAP_PATIENCE)
    for path in came - mapped():
        with contextlib.suppress(OSError):
            if path.stat().st_uid == os.getuid():
                path.unlink()


def _with_variable(name: str, value: str) -> set[str]:
    """Living processes but this one; one that has ended shows no environment."""
    whole, begun, found = f"{name}={value}".encode(), f"{name}={value}.".encode(), set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        with contextlib.suppress(OSError):
            variables = path.read_bytes().split(b"\0")
            if pid != os.getpid() and any(
                each == whole or each.startswith(begun) for each in variables
            ):
                found.add(identity(pid))
    return found - {""}


def _name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""


def _signal(processes: set[str], number: int) -> None:
    for who in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if lives(who):
                os.kill(int(who.partition(".")[0]), number)


def _end(processes: set[str], patience: float) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(processes, number)
        _await_end(processes, patience)


def _await_end(processes: set[str], patience: float) -> None:
    deadline = time.monotonic() + patience
    while any(lives(who) for who in processes) and time.monotonic() < deadline:
        time.sleep(POLL)
