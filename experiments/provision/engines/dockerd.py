"""Starts and ends dockerd on a machine without a service manager.

engine.py decides whether one is needed and whether it answers.
"""

import contextlib
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.processes import background, executables, tracking
from experiments.processes.background import Process
from experiments.processes.logs import last_lines

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
    return background.start(words or command(), log, tracking.daemon_environment(variables))


def end(daemon: Process) -> None:
    """End an engine; dockerd ends its containers and its containerd first."""
    background.end(daemon, STOP_PATIENCE)


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
