"""Finds and removes what killed ranks leave: processes and shared-memory files.

A rank that ends by itself, or under a live launcher, cleans up; a killed one cannot.
"""

import contextlib
import functools
import os
import pwd
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

MARK = "HBMCOMM_LAUNCH"
"""Environment variable that marks the processes of one launch, in any process group. The mark of a
launch begins with its driver's own mark, which marks everything else that the driver starts."""
DAEMON = "HBMCOMM_DAEMON"
"""Environment variable that marks an engine that a driver started. It can serve other drivers after
that one has ended."""
DAEMONS = ("dockerd", "podman")
"""Programs that end their children on SIGTERM. The children carry the variable as well."""
MONITOR = "conmon"
"""Podman's program beside each container and each command in one."""

SHM = Path("/dev/shm")
NAMED_SHM = "HBMCOMM_SHM"
"""Environment variable with the folder that transport direct uses in place of /dev/shm."""
SEGMENTS = (
    *("sm_segment.*", "vader_segment.*", "mpich_shm_*", "ucx_shm_*", "Intel_MPI_*", "hbmcomm.*"),
)
"""Names of the files that ranks of Open MPI, MPICH and Intel MPI share. Transport direct has files
only where memfd is refused or a folder is named, and only until every rank has mapped them."""

END_PATIENCE = 2.0  # seconds until a killed process is gone
MAP_PATIENCE = 1.0  # seconds between making a file and mapping it
EXEC_PATIENCE = 5e-3  # seconds that a program takes to begin, with time to spare
POLL = 0.02  # seconds
SCAN = 0.1  # seconds between two looks at what all processes map


def identity(pid: int) -> str:
    """The process that has this PID now, as "PID.START" in clock ticks since boot; "" where none.

    PIDs are reused; (PID, start time) is not. A zombie has ended.
    """
    fields = _stat(pid)
    return f"{pid}.{fields[19]}" if fields and fields[0] != "Z" else ""


def _stat(pid: int) -> list[str]:
    """Fields 3 (state) to 52 of a process as proc(5) has them, 22 its start; none where none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def lives(process: str) -> bool:
    """Whether the process of that identity still runs."""
    return identity(pid_of(process)) == process


def pid_of(process: str) -> int:
    """The PID in an identity."""
    return int(process.partition(".")[0])


def is_own(pid: int) -> bool:
    """Whether a process is this user's: all its user IDs are this process's effective one."""
    return _user_of(pid) == os.geteuid()


def own_mark() -> str:
    """The mark of this process: its identity and a secret.

    Nobody else can read it, so a file that names it was written by this process.
    """
    return _mark_of(identity(os.getpid()))


@functools.cache
def _mark_of(process: str) -> str:
    return f"{process}.{os.urandom(8).hex()}"


def new_mark() -> str:
    """A mark for one launch of this process."""
    return f"{own_mark()}.{time.monotonic_ns()}"


def daemon_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of an engine that this process starts, marked as its engine."""
    rest = {name: value for name, value in environment.items() if name != MARK}
    return rest | {DAEMON: own_mark()}


def segments() -> set[Path]:
    """The shared-memory files of ranks that exist now."""
    return {path for folder in _folders() for pattern in SEGMENTS for path in folder.glob(pattern)}


def _folders() -> tuple[Path, ...]:
    """Where ranks with the variables of this process have their shared-memory files."""
    named = Path(os.environ.get(NAMED_SHM, "").strip())
    return (SHM, named) if named.is_absolute() else (SHM,)


def mapped() -> set[Path]:
    """The shared-memory files that living processes map, as far as /proc can be read."""
    mapped = set[str]()
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            text = maps.read_text(errors="replace")
            for folder in _folders():
                mapped |= set(re.findall(rf" ({re.escape(str(folder))}/.*)", text))
    return set(map(Path, mapped))


def marked(mark: str) -> set[str]:
    """Identities of living processes that carry the mark, or one that begins with it."""
    return _with_variable(MARK, mark, in_containers=True)


def terminate_marked(mark: str, patience: float) -> int:
    """Send SIGTERM to every process with the mark and wait; the number of processes.

    On SIGTERM a launcher removes its folder below /tmp. A process that executes a new program
    shows no environment for a moment, so there are two looks.
    """
    processes = marked(mark) | _marked_later(mark)
    signal_and_wait(processes, signal.SIGTERM, patience)
    return len(processes)


def end_marked(mark: str) -> None:
    """Kill every process that carries the mark, and wait until none is left.

    While a process executes a new program, its environment is empty for a moment, so nobody is
    believed to be gone before a second look.
    """
    deadline = time.monotonic() + END_PATIENCE
    while (processes := marked(mark) or _marked_later(mark)) and time.monotonic() < deadline:
        # and wait: the kernel frees the memory of a process after its environment is gone
        signal_and_wait(processes, signal.SIGKILL, deadline - time.monotonic())
        for process in processes:
            remove_job_folder(pid_of(process))


def _marked_later(mark: str) -> set[str]:
    time.sleep(EXEC_PATIENCE)
    return marked(mark)


def remove_job_folder(launcher: int) -> None:
    """Remove the temporary folder of an Open MPI launcher that was killed.

    The next launcher with its PID would find it and refuse to start ("The PMIx server's listener
    thread failed to start", exit code 213). A launcher that ended by itself leaves no folder.
    A process that has this PID now may be a later launcher, with this folder.
    """
    folder = Path(tempfile.gettempdir(), f"ompi.{launcher}")
    with contextlib.suppress(FileNotFoundError):
        if not identity(launcher) and _is_ours(folder.lstat().st_uid):
            shutil.rmtree(folder, ignore_errors=True)


def end_daemons(
    mark: str, patience: float, used: str = "", names: tuple[str, ...] = DAEMONS
) -> int:
    """End the engines that the driver of a mark started, and so their children; how many.

    Args:
        used: identity of an engine that other processes use, which stays.
        names: of the programs that end.
    """
    daemons = {
        process
        for process in _with_variable(DAEMON, mark)
        if process != used and name(pid_of(process)) in names
    }
    end(daemons, patience)
    return len(daemons)


def end_monitors(container: str, patience: float) -> None:
    """End the monitors of commands that ran in a container of Podman, which is gone.

    They wait for minutes, so that others can ask how these commands ended; none carries a mark.

    Args:
        container: its whole id, by which its monitors are called.
    """
    monitors = set[str]()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            pid, process = int(path.parent.name), identity(int(path.parent.name))
            if name(pid) == MONITOR and is_own(pid) and container.encode() in path.read_bytes():
                monitors.add(process)
    end(monitors - {""}, patience)


def daemon_of_ours(pid: int) -> str:
    """The identity of a process that any driver started as an engine; "" for other processes."""
    process = identity(pid)
    return process if process in carrying(DAEMON) else ""


def remove_segments(before: set[Path]) -> None:
    """Remove this user's files that are newer than `before` and that no living process maps.

    Files of the unknown user that ranks of a root run as are removed too.

    Another job may just have made a file, and gets time to map it. A process that was killed may
    map one for a moment longer.
    """
    added, deadline = segments() - before, time.monotonic() + MAP_PATIENCE
    while added:
        is_last, now = time.monotonic() > deadline, time.time()  # before a look that takes long
        for path in added - mapped():
            with contextlib.suppress(OSError):
                state = path.lstat()
                is_old = is_last or now - state.st_mtime > MAP_PATIENCE
                if is_old and stat.S_ISREG(state.st_mode) and _is_ours(state.st_uid):
                    path.unlink()
        if is_last:
            return
        added &= segments()
        if added:
            time.sleep(SCAN)


def carrying(name: str, in_containers: bool = False) -> dict[str, str]:
    """An environment variable of each living process that has it, by identity; not of this one.

    Any user can set it, so only processes of this user count.

    Args:
        in_containers: whether root's ranks in containers count as well, which are of a user that
            this machine does not have.
    """
    values, begun = {}, f"{name}=".encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        pid = int(path.parent.name)
        with contextlib.suppress(OSError):
            for variable in path.read_bytes().split(b"\0"):  # empty of a process that has ended
                if pid != os.getpid() and variable.startswith(begun):
                    process, user = identity(pid), _user_of(pid)
                    own = user == os.geteuid() or (in_containers and _is_ours(user))
                    if process and own:
                        values[process] = variable.removeprefix(begun).decode(errors="replace")
    return values


def parent_of(pid: int) -> int:
    """The PID of a process's parent; 0 where it has none here, or has ended."""
    return int((_stat(pid) or ["", "0"])[1])


def sharing_pids(pid: int) -> set[int]:
    """All processes in the PID namespace of a process, that one among them."""
    sharing, namespace = set[int](), Path(f"/proc/{pid}/ns/pid").readlink()
    for path in Path("/proc").glob("[0-9]*/ns/pid"):
        with contextlib.suppress(OSError):
            other = int(path.parts[2])
            if path.readlink() == namespace and identity(other):
                sharing.add(other)
    return sharing


def _user_of(pid: int) -> int | None:
    """The one user of a process; None where its user IDs differ, or it has ended."""
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        line = re.search(r"^Uid:(.*)$", text, re.MULTILINE)
        users = set(line[1].split() if line else [])
        return int(users.pop()) if len(users) == 1 else None
    return None


def _is_ours(user: int | None) -> bool:
    """Whether a user is this process's, or of its containers: root gives these one of nobody."""
    if user is None or user == os.geteuid() or os.geteuid() != 0:
        return user == os.geteuid()
    try:
        pwd.getpwuid(user)
    except KeyError:
        return True
    return False


def _with_variable(name: str, value: str, in_containers: bool = False) -> set[str]:
    """Living processes except this one."""
    return {
        process
        for process, carried in carrying(name, in_containers).items()
        if carried == value or carried.startswith(f"{value}.")
    }


def name(pid: int) -> str:
    """The name of a process, which has 15 letters at most; "" where there is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    return ""


def end(processes: set[str], patience: float) -> None:
    """SIGTERM, and SIGKILL once they have had so many seconds."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal_and_wait(processes, number, patience)


def signal_and_wait(processes: set[str], number: int, patience: float) -> None:
    """Send a signal, and wait until all have ended or have had so many seconds."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if lives(process):
                os.kill(pid_of(process), number)
    deadline = time.monotonic() + patience
    while any(map(lives, processes)) and time.monotonic() < deadline:
        time.sleep(POLL)
