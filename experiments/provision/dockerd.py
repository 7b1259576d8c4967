"""Starts and ends dockerd on a machine without a service manager.

engine.py decides whether one is needed and whether it answers.
"""

import contextlib
import fcntl
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from experiments.processes import executables, tracking
from experiments.processes.executables import Process
from experiments.processes.files import last_lines

LOCK = Path("/run/hbmcomm-engine")
"""Stays, and is empty. Only root can write there: root alone starts engines, and in a folder that
all users can write, any of them could keep an engine from ending."""
STARTING = LOCK.with_name(f"{LOCK.name}.starting")
"""Locked by a process that looks for an engine and starts it, so that two do not start one each."""


@contextlib.contextmanager
def counted(end: Callable[[], None], lock: Path = LOCK) -> Iterator[None]:
    """Be a user for the time of the block; then call `end` if there is no other user."""
    with _opened(lock) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_SH)
        try:
            yield
        finally:
            if descriptor is not None and _alone(descriptor):
                end()


def in_use(lock: Path = LOCK) -> bool:
    """Whether the engine has a user now."""
    with _opened(lock) as descriptor:
        return descriptor is not None and not _alone(descriptor)


@contextlib.contextmanager
def starting(lock: Path = STARTING) -> Iterator[None]:
    """Keep other processes from starting an engine; waits for one that does."""
    with _opened(lock) as descriptor:
        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _opened(lock: Path) -> Iterator[int | None]:
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _alone(descriptor: int) -> bool:
    """Try to upgrade to an exclusive lock; succeeds for the last holder."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


STOP_PATIENCE = 30.0  # seconds; dockerd itself gives its containers 15 before it ends them
CONNECT_PATIENCE = 5.0  # seconds

# dockerd's default files. Files of a killed dockerd keep the next one from starting.
PIDFILE = Path("/var/run/docker.pid")
PIDFILES = {
    PIDFILE: "dockerd",
    Path("/var/run/docker/containerd/containerd.pid"): "containerd",
}
"""Each with the name of the process that it should name."""
SYSTEM_CONTAINERD = Path("/run/containerd/containerd.sock")
"""The socket that dockerd would trust to have a containerd behind it."""
SOCKET = Path("/var/run/docker.sock")
"""Its own; one that a killed dockerd left refuses other users as a living one does."""
SOCKETS_OF_ALL = Path("/proc/net/unix")
LISTENING = 0x10000  # __SO_ACCEPTCON, among the flags there


def command() -> list[str]:
    """dockerd with its default paths."""
    return [executables.find("dockerd") or "dockerd"]


def private_command(data: Path, folder: Path) -> list[str]:
    """A dockerd for its caller alone: own data, own socket, no networks.

    It has a network namespace of its own, or it would remove the bridge of the machine's engine.

    Args:
        data: what it fills with images.
        folder: an empty one for its socket and what it needs while it runs.
    """
    return [
        *("unshare", "--net", "--", *command()),
        *(f"--data-root={data}", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"),
        *(f"--host=unix://{folder}/socket", "--storage-driver=overlay2", "--bridge=none"),
        *("--iptables=false", "--ip6tables=false"),
    ]


def start(
    log: Path, words: Sequence[str] = (), variables: Mapping[str, str] = os.environ
) -> Process:
    """Start an engine in a session of its own, so that Ctrl-C does not reach it.

    A driver's watchdog finds it by its environment.

    Args:
        words: its command, that of dockerd if left out.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    return executables.start(words or command(), log, tracking.daemon_environment(variables))


def end(daemon: Process) -> None:
    """End an engine; dockerd ends its containers and its containerd first."""
    executables.end(daemon, STOP_PATIENCE)


def ours(pidfile: Path = PIDFILE) -> str:
    """Identity of the machine's dockerd, if one of our drivers started it; else ""."""
    if _process_name(pidfile) != "dockerd":
        return ""
    return tracking.daemon_of_ours(int(pidfile.read_text(encoding="ascii")))


def end_ours(pidfile: Path = PIDFILE) -> None:
    """End the machine's dockerd, if one of our drivers started it."""
    if daemon := ours(pidfile):
        tracking.end({daemon}, STOP_PATIENCE)
        with contextlib.suppress(ChildProcessError):  # another driver started it
            os.waitpid(tracking.pid_of(daemon), os.WNOHANG)


def clear_leftovers() -> bool:
    """Remove what a killed dockerd or containerd left; whether a dockerd lives after all."""
    alive = False
    for pidfile, name in PIDFILES.items():
        if not pidfile.exists():
            continue
        if _process_name(pidfile) == name:
            alive |= name == "dockerd"
        else:
            pidfile.unlink(missing_ok=True)
    for path in (SYSTEM_CONTAINERD, SOCKET):
        if path.exists() and not _accepts(path):
            path.unlink(missing_ok=True)
    return alive


def listens(path: Path = SOCKET) -> bool:
    """Whether a process listens on a socket, seen without the right to connect to it."""
    names = {str(path), str(path.resolve())}
    for line in SOCKETS_OF_ALL.read_text(encoding="utf-8", errors="replace").splitlines()[1:]:
        fields = line.split(maxsplit=7)
        if len(fields) == 8 and fields[7] in names and int(fields[3], 16) & LISTENING:
            return True
    return False


def complaint(log: Path) -> str:
    """The last line that it wrote."""
    return "".join(last_lines(log, 1)).strip() or "its log is empty"


def _process_name(pidfile: Path) -> str:
    """The name of the living process that the file names, or nothing. A zombie is not alive."""
    try:
        pid = int(pidfile.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return ""
    return tracking.name(pid) if tracking.identity(pid) else ""


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(CONNECT_PATIENCE)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
