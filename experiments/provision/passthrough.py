"""What of this machine a container is given: CPUs, memory nodes, memory devices, and an owner."""

import contextlib
import grp
import os
import pwd
import resource
import stat
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import hbmcomm
from experiments.environments.profiles import CONTAINER_USER, Machine
from experiments.machine.facts import parse_list, status
from experiments.model.errors import Missing
from experiments.provision import user_namespaces
from experiments.provision.user_namespaces import SUBORDINATE

UNUSED = range(CONTAINER_USER, 61184)
"""Ids that no distribution gives to anyone."""


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def is_root() -> bool:
    """Whether the driver is root."""
    return os.getuid() == 0


def owner() -> tuple[int, int]:
    """uid and gid that container ranks run and write as: one's own; those of nobody where root."""
    if is_root():
        return (nobodys(),) * 2
    return os.getuid(), os.getgid()


@cache
def nobodys() -> int:
    """The first of UNUSED that is no user, no group, and no user's subordinate id on this machine.

    A user with this id would own what ranks write, and could write into a launch's folder.

    Raises:
        Missing: all are taken.
    """
    lent = [ids for file in SUBORDINATE for ids in user_namespaces.lent(file)]
    for number in UNUSED:
        if not _is_known(number) and not any(number in ids for ids in lent):
            return number
    raise Missing(
        f"each id from {UNUSED[0]} to {UNUSED[-1]} is a user, a group or a subordinate id of this "
        "machine, and ranks of root need one that is nobody's: free one in /etc/subuid and "
        "/etc/subgid, or start the campaign as an ordinary user"
    )


def _is_known(number: int) -> bool:
    """Whether a user or a group has this id; NSS is asked, so network accounts count."""
    for ask in (pwd.getpwuid, grp.getgrgid):
        with contextlib.suppress(KeyError):
            ask(number)
            return True
    return False


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
        lent=user_namespaces.of_root() if is_root() else (0, 0),
    )


def devices(paths: Iterable[Path]) -> tuple[str, ...]:
    """The paths that are device files: memory that is online as a node has none."""
    return tuple(str(path) for path in paths if path.exists() and stat.S_ISCHR(path.stat().st_mode))


def groups(paths: Iterable[str], own: int) -> tuple[int, ...]:
    """Groups beside one's own that may read and write these files."""
    states = [Path(path).stat() for path in paths]
    return tuple(
        sorted({state.st_gid for state in states if state.st_mode & 0o060 == 0o060} - {own})
    )
