"""What of this machine a container is given: CPUs, memory nodes, memory devices, and an owner."""

import os

import hbmcomm
from experiments.environments.docker import Machine

CONTAINER_USER = 1000  # where the driver is root, its containers are not


def cores() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0))


def owner() -> tuple[int, int]:
    """uid and gid that container ranks run and write as; never root."""
    if os.getuid() == 0:
        return CONTAINER_USER, CONTAINER_USER
    return os.getuid(), os.getgid()


def machine() -> Machine:
    """CPUs, nodes and devices as this process itself may use them."""
    topology = hbmcomm.topology()
    uid, gid = owner()
    return Machine(
        cpus=",".join(str(cpu) for cpu in sorted(os.sched_getaffinity(0))),
        mems=",".join(str(node.id) for node in topology.nodes if node.total_bytes),
        dax=tuple(f"/dev/{device.name}" for device in topology.dax),
        uid=uid,
        gid=gid,
    )
