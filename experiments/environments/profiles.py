"""What a container may do: the engine's options that a profile decides. Pure, one dict per call.

Whatever the profile: never root, no network, a read-only root with an empty /tmp, no new
privileges, a limit of processes, and the CPUs, nodes and memory devices of the host. None of these
is on a way that data takes between ranks, so all profiles share them.
"""

from dataclasses import dataclass
from typing import Any

from experiments.model.environment import USERNS

SECCOMP = "build/seccomp/tuned.json"
"""The tuned profile's filter, under the checkout; provision/seccomp.py writes it."""
TMPFS = "rw,nosuid,nodev,size=256m"
PINNED = ("taskset", "--cpu-list")
"""Words before a list of CPUs and a program, which keep the program to them."""
LENT = 65536
"""How many ids a user namespace has: all that files of an image may belong to."""
CONTAINER_USER = 60706
"""uid and gid of ranks whose driver is root: not root, and no user of the machine. systemd gives
the ids 60706 to 61183 to nobody. The images have a user of this number."""


@dataclass(frozen=True)
class Machine:
    """What of the host is passed through.

    Attributes:
        cpus, mems: what this process may use, in the kernel's list form: "0-3,8".
        dax: memory device files, such as /dev/dax0.0.
        uid, gid: the owner of what the container writes; never root.
        memlock: bytes that a process here may lock at most, -1 for no limit.
        groups: of the device files, beside gid: an engine passes a file in with its owner and mode.
        lent: the first uid and gid of those that Podman may map into containers where root runs it;
            0 where it has none.
    """

    cpus: str
    mems: str
    dax: tuple[str, ...]
    uid: int
    gid: int
    memlock: int = -1
    groups: tuple[int, ...] = ()
    lent: tuple[int, int] = (0, 0)


def owner(profile: str, own: tuple[int, int], lent: tuple[int, int]) -> tuple[int, int]:
    """uid and gid, as this machine sees them, of a container's ranks and of what they write.

    Args:
        own: theirs in the container, which are the same outside of a user namespace.
        lent: as Machine has it.
    """
    return (own[0] + lent[0], own[1] + lent[1]) if profile == USERNS else own


def options(
    profile: str, machine: Machine, ranks: int, engine: str = "docker", rootless: bool = False
) -> dict[str, Any]:
    """Keyword arguments of the Docker SDK's containers.create for a container of so many ranks.

    Args:
        profile: "default": capabilities, seccomp filter, /dev/shm and limits as the engine gives
            them. "tuned": no capability at all, our filter, /dev/shm for the ranks, and as much
            locked memory as a rank has on the host. "userns": the same in a user namespace, in
            which root is none of the host's users. "privileged": everything the engine can give.
        engine: "docker" or "podman". Podman's containers inherit the driver's limit of locked
            memory; given one limit, it ignores those that it was configured with.
        rootless: whether an ordinary user runs the engine. All of its containers are in a user
            namespace, in which the user keeps its ids. It has no CPU sets to give, and refuses or
            ignores a container that asks for one; PINNED takes their place. Its limit of processes
            is its own.
    """
    keywords: dict[str, Any] = {
        "user": f"{machine.uid}:{machine.gid}",
        "read_only": True,
        "tmpfs": {"/tmp": TMPFS},
        "network_mode": "none",
        "security_opt": ["no-new-privileges"],
        "cpuset_cpus": machine.cpus,
        "cpuset_mems": machine.mems,
        "devices": [f"{path}:{path}:rw" for path in machine.dax],
        "pids_limit": 1024 + 64 * ranks,
    }
    if machine.groups:
        keywords["group_add"] = [str(group) for group in machine.groups]
    if rootless:
        for option in ("cpuset_cpus", "cpuset_mems", "pids_limit"):
            del keywords[option]
        keywords["userns_mode"] = "keep-id"
        if machine.groups:  # of the user on the host, which have no number inside
            keywords["group_add"] = ["keep-groups"]
    if profile == USERNS:
        uid, gid = machine.lent
        keywords["userns_mode"] = f"auto:uidmapping=0:{uid}:{LENT},gidmapping=0:{gid}:{LENT}"
    if profile != "default":
        keywords["shm_size"] = shared_memory(ranks)
    if profile != "default" and engine == "docker":  # which refuses more than the host has
        limit = {"name": "memlock", "soft": machine.memlock, "hard": machine.memlock}
        keywords["ulimits"] = [limit]
    if profile in ("tuned", USERNS):
        keywords["cap_drop"] = ["ALL"]
        keywords["security_opt"].append(f"seccomp={SECCOMP}")
    if profile == "privileged":
        keywords["privileged"] = True
    return keywords


def reading_refused(profile: str, engine: str, version: str) -> bool:
    """Whether the filter keeps ranks from reading each other's memory, even as the same user.

    Only the default filter of Docker before 23.0 does (moby/moby pull request 42083); an engine
    of an unknown version may be one of these.
    """
    if profile != "default" or engine != "docker":
        return False
    major = version.partition(".")[0]
    return not major.isdigit() or int(major) < 23


def shared_memory(ranks: int) -> int:
    """Bytes of /dev/shm for a launch: an MPI's segments take about 16 MiB a rank, less kills it."""
    return 64 * 2**20 * (ranks + 1)
