"""What of this machine a container is given: CPUs, memory nodes, memory devices, and an owner."""

import os
import resource
import stat
from collections.abc import Iterable
from pathlib import Path

import hbmcomm
from experiments.emulation.machine import Description
from experiments.environments.profiles import Machine
from experiments.programs.machine.facts import parse_list, status

CONTAINER_USER = 1000  # where the driver is root, its containers are not
GUEST_MEMLOCK = 8 * 2**20  # bytes: Linux's default since 5.16 (MLOCK_LIMIT)


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def is_root() -> bool:
    """Whether the driver is root."""
    return os.getuid() == 0


def owner() -> tuple[int, int]:
    """uid and gid that container ranks run and write as; never root."""
    if is_root():
        return CONTAINER_USER, CONTAINER_USER
    return os.getuid(), os.getgid()


def machine() -> Machine:
    """CPUs, nodes and devices as this process itself may use them."""
    topology = hbmcomm.topology()
    uid, gid = owner()
    allowed = parse_list(status().get("Mems_allowed_list", ""))
    mems = [node.id for node in topology.nodes if node.total_bytes]
    dax = devices(Path("/dev") / device.name for device in topology.dax)
    return Machine(
        cpus=",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))),
        mems=",".join(str(node) for node in mems if node in allowed or not allowed),
        dax=dax,
        uid=uid,
        gid=gid,
        memlock=resource.getrlimit(resource.RLIMIT_MEMLOCK)[1],
        groups=groups(dax, gid),
    )


def emulated(described: Description) -> Machine:
    """All of an emulated machine as it comes up, to an ordinary user of its guest.

    Its kernel's own limit of locked memory holds there: nothing in the guest sets another.
    """
    return Machine(
        cpus=",".join(str(cpu) for node in described.nodes for cpu in node.cpus),
        mems=",".join(str(node.id) for node in described.nodes if node.memory_bytes),
        dax=tuple(f"/dev/{device.name}" for device in described.dax),
        uid=CONTAINER_USER,
        gid=CONTAINER_USER,
        memlock=GUEST_MEMLOCK,
    )


def devices(paths: Iterable[Path]) -> tuple[str, ...]:
    """The paths that are device files: memory that is online as a node has none."""
    return tuple(str(path) for path in paths if path.exists() and stat.S_ISCHR(path.stat().st_mode))


def groups(paths: Iterable[str], own: int) -> tuple[int, ...]:
    """Groups beside one's own that may read and write these files."""
    states = [Path(path).stat() for path in paths]
    return tuple(sorted({each.st_gid for each in states if each.st_mode & 0o060 == 0o060} - {own}))
