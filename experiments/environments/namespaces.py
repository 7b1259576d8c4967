"""A command in the namespaces of a running process. Pure."""

KINDS = ("net", "uts", "ipc", "mount", "pid")
"""The namespaces that an emulated host has of its own, as nsenter(1) and unshare(1) name them."""
TEMPORARY = "/dev/shm"
"""TMPDIR of a host. PIDs of several hosts are equal, and an MPI names files in TMPDIR by PID."""


def entering(pid: int | str, folder: str = "/tmp") -> list[str]:
    """The words before a command that runs it where a process runs.

    Args:
        pid: of that process, in the PID namespace of the process that enters; a name in its place,
            where a command is only shown.
        folder: the command's working directory.
    """
    kinds = [f"--{kind}" for kind in KINDS]
    own = ["env", f"--chdir={folder}", f"TMPDIR={TEMPORARY}"]
    return ["nsenter", f"--target={pid}", *kinds, "--", *own]
